#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/memcached/model.h"
#include "simulate/store_server.h"

namespace lockbench::simulate {

/// A memcached server. It keeps nothing on disk, and has no replicas.
class MemcachedNode final : public StoreServer {
 public:
  /// The processor's time for a command; memcached's threads are modelled as one. By default as
  /// much less than Redis's as in results/reference/alone.json.
  static constexpr Duration kPerCommand = std::chrono::microseconds(3);

  MemcachedNode(World& world, Network& network, int number, int region,
                Duration per_command = kPerCommand);

  void restart() override;
  bool evict(bool only_volatile) override;
  std::vector<std::string> keys() const override { return data_.names(second()); }

 private:
  struct Client;

  std::unique_ptr<Wire::Session> open_session() const override;
  bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) override;
  void work(const std::shared_ptr<Wire>& wire) override;
  /// Its count of seconds.
  std::int64_t second() const;

  const Duration per_command_;
  TimePoint started_;
  MemcachedModel data_;
};

}  // namespace lockbench::simulate
