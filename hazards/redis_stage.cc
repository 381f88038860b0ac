#include <fmt/format.h>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "strategies/redis/connection.h"
#include "testbed/clock_shim.h"
#include "testbed/redis_group.h"

namespace lockbench::hazards {
namespace {

template <class T, class E>
T need(tl::expected<T, E> result) {
  if (!result) throw StageFailure(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// One Redis, or one with a replica.
class RedisStage : public Stage {
 public:
  explicit RedisStage(Ground ground) : ground_(ground) {}

  tl::expected<void, std::string> open(House& house) {
    testbed::RedisOptions options;
    options.durable = ground_ == Ground::durable;
    options.max_clients = 1000;
    if (ground_ == Ground::durable) options.config = {"appendfsync always"};
    if (ground_ == Ground::cramped) options.config = {"maxmemory-policy volatile-ttl"};
    if (ground_ == Ground::clocked) {
      auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
      if (!clock) return tl::unexpected(clock.error());
      clock_ = *std::move(clock);
      options.clock = clock_.get();
    }
    if (ground_ == Ground::replicated) {
      auto proxies = testbed::ProxyPool::start();
      if (!proxies) return tl::unexpected(proxies.error());
      proxies_ = *std::move(proxies);
      auto group = testbed::start_redis_group(
          house.testbed(), {.replicas = 1, .server = options, .proxies = proxies_.get()});
      if (!group) return tl::unexpected(group.error());
      group_ = *std::move(group);
      return {};
    }
    auto server = testbed::start_redis(house.testbed(), options);
    if (!server) return tl::unexpected(server.error());
    server_ = *std::move(server);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    return {{"redis", {fmt::format("redis://127.0.0.1:{}", port != 0 ? port : this->port())}}};
  }
  std::uint16_t port() const override { return server().port(); }

  std::string value_of(const std::string& key) override { return ask({"GET", key}).text; }
  void restart() override {
    need(server_->kill_hard());
    need(server_->restart(ground_ == Ground::durable));
  }
  void jump_clock(Duration ahead) override { clock_->set(ahead); }

  void fill_memory(const std::string& key) override {
    const std::string info = ask({"INFO", "memory"}).text;
    const std::size_t at = info.find("used_memory:");
    if (at == std::string::npos) throw StageFailure("redis does not tell its memory");
    const auto used = std::stoull(info.substr(at + std::string_view("used_memory:").size()));
    ask({"CONFIG", "SET", "maxmemory", std::to_string(used + kRoom)});
    const std::string filling(1024, 'x');
    for (std::uint64_t i = 0; i < 8 * kRoom / filling.size(); ++i) {
      // What was there first and dies first is what volatile-ttl lets go.
      ask({"SET", fmt::format("filling:{}", i), filling, "EX", "86400"});
      if (i % 64 == 0 && ask({"EXISTS", key}).is_integer(0)) return;
    }
  }

  void cut_replication() override { group_->replication()->hold(); }
  void fail_over() override {
    need(group_->primary().kill_hard());
    need(group_->promote(0));
    failed_over_ = true;
  }

 private:
  static constexpr std::uint64_t kRoom = 1 << 20;

  testbed::RedisServer& server() const {
    if (!group_) return *server_;
    return failed_over_ ? group_->replica(0) : group_->primary();
  }

  redis::Reply ask(std::initializer_list<std::string_view> command) {
    const std::scoped_lock lock(mutex_);
    if (!connection_) {
      const auto endpoint = redis::parse_endpoint(server().url());
      connection_ = redis::make_hiredis_factory()->make(*endpoint, std::chrono::seconds(5), *env_);
    }
    auto reply = connection_->call(command);
    if (!reply) throw StageFailure(reply.error().message);
    return *std::move(reply);
  }

  const Ground ground_;
  std::unique_ptr<testbed::ClockShim> clock_;
  std::unique_ptr<testbed::ProxyPool> proxies_;
  std::unique_ptr<testbed::RedisServer> server_;
  std::unique_ptr<testbed::RedisGroup> group_;
  bool failed_over_ = false;
  std::mutex mutex_;  ///< guards the connection
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<redis::Connection> connection_;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  auto stage = std::make_shared<RedisStage>(ground);
  if (auto opened = stage->open(house); !opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("redis", make_stage);

}  // namespace
}  // namespace lockbench::hazards
