#include "strategies/store.h"

#include "strategies/memcached/client/connection.h"

namespace lockbench::memcached {
namespace {

class MemcachedStore : public Store {
 public:
  MemcachedStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(0)), memcached_(std::move(endpoint), command_timeout, *env_) {}

  std::string display() const override { return memcached_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    memcached_.close();
    return memcached_.connect(stop);
  }

  StoreResult<StoreFacts> facts() override {
    // A connection that idled through a run may be to a server that is gone.
    memcached_.close();
    return memcached_.facts();
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) override {
    memcached_.close();
    std::size_t removed = 0;
    for (const std::string& key : keys) {
      const auto was_there = memcached_.remove(key);
      if (!was_there) return tl::unexpected(was_there.error());
      if (*was_there) ++removed;
    }
    return removed;
  }

 private:
  std::unique_ptr<Env> env_;
  Connection memcached_;
};

const StoreRegistration registration({
    .name = "memcached",
    .value_name = "HOST:PORT",
    .help = "use this memcached instead of a private one",
    .display = [](const std::string& url) -> StoreKind::Text {
      return parse_endpoint(url).map([](const Endpoint& endpoint) { return endpoint.display(); });
    },
    .make = [](const std::string& url, Duration command_timeout) -> std::unique_ptr<Store> {
      return std::make_unique<MemcachedStore>(parse_endpoint(url).value(), command_timeout);
    },
});

}  // namespace
}  // namespace lockbench::memcached
