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

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    // Few round trips, and the replies fit into the sockets' buffers while requests are sent.
    constexpr std::size_t kBatch = 200;
    memcached_.close();
    return remove_in_batches(keys, kBatch, display(), stop,
                             [&](auto batch) { return memcached_.remove_all(batch, stop); });
  }

 private:
  std::unique_ptr<Env> env_;
  Connection memcached_;
};

const StoreRegistration memcached_store({
    .name = "memcached",
    .value_name = "URL",
    .help =
        "use this memcached instead of a private one: [memcached://][user:password@]HOST[:PORT], "
        "or memcaches:// for TLS, with "
        "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.3 as needed",
    .listing = Listing::none,
    .display = display_of<parse_endpoint>,
    .secrecy =
        [](const std::string& url) {
          return secrecy_by_scheme(parse_endpoint(url).value(), "memcaches://");
        },
    .make = make_store<parse_endpoint, MemcachedStore>,
});

}  // namespace
}  // namespace lockbench::memcached
