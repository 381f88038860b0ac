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
  MemcachedNode(World& world, Network& network, int number, int region);

  void restart() override;
  bool evict(bool only_volatile) override;
  bool remove(const std::string& key) override;
  std::vector<std::string> keys() const override { return data_.names(second()); }

 private:
  struct Client;

  std::unique_ptr<Wire::Session> open_session() const override;
  bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) override;
  void work(const std::shared_ptr<Wire>& wire) override;
  /// Its count of seconds.
  std::int64_t second() const;

  TimePoint started_;
  MemcachedModel data_;
};

}  // namespace lockbench::simulate
