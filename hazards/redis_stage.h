#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "strategies/redis/client/connection.h"
#include "testbed/process/clock_shim.h"
#include "testbed/servers/redis_group.h"
#include "testbed/servers/sentinel.h"

namespace lockbench::hazards {

/// One Redis, or a primary with replicas.
class RedisStage : public Stage {
 public:
  /// `replicas`: as many at least; a ground may ask for one itself.
  RedisStage(Ground ground, int replicas) : ground_(ground), replicas_(replicas) {}

  tl::expected<void, std::string> open(House& house);

  Endpoints endpoints(std::uint16_t port) const override;
  std::uint16_t port() const override { return server().port(); }
  std::string value_of(const std::string& key) override { return ask({"GET", key}).text; }
  /// With replicas it is there again when they follow it again.
  void restart() override;
  void jump_clock(Duration ahead) override { clock_->set(ahead); }
  void fill_memory(const std::string& key) override;
  void cut_replication() override;
  void cut_off_successor() override { group_->replication(0)->hold(); }
  void fail_over() override;

  /// The one that clients use now.
  testbed::RedisServer& server() const;

 private:
  tl::expected<void, std::string> open_group(House& house, const testbed::RedisOptions& options);
  redis::Reply ask(std::initializer_list<std::string_view> command);

  const Ground ground_;
  const int replicas_;
  std::unique_ptr<testbed::ClockShim> clock_;
  std::unique_ptr<testbed::ProxyPool> proxies_;
  std::unique_ptr<testbed::RedisServer> server_;
  std::unique_ptr<testbed::RedisGroup> group_;
  std::unique_ptr<testbed::SentinelGroup> sentinels_;
  std::uint64_t replication_ = 0;  ///< its number among the connections of a line for all
  bool failed_over_ = false;
  std::mutex mutex_;  ///< guards the connection
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<redis::Connection> connection_;
};

}  // namespace lockbench::hazards
