#include "strategies/store.h"

#include <fmt/format.h>

#include "strategies/etcd/client/connection.h"

namespace lockbench::etcd {
namespace {

class EtcdStore : public Store {
 public:
  EtcdStore(Endpoint endpoint, Duration command_timeout)
      : env_(make_system_env(0)), etcd_(std::move(endpoint), command_timeout, *env_) {}

  std::string display() const override { return etcd_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    etcd_.close();
    // A read, so that missing permissions show now.
    return etcd_.list({}, "lockbench:", 1, stop).map([](const auto&) {});
  }

  StoreResult<StoreFacts> facts() override {
    // A connection that idled through a run may be to a server that is gone.
    etcd_.close();
    return etcd_.facts();
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    std::vector<std::string> prefixes;
    prefixes.reserve(keys.size());
    for (const std::string& key : keys) prefixes.push_back(key + "/");
    return remove(prefixes, stop);
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    // Its own keys, and those of its parts.
    return remove({fmt::format("lockbench:{}:", run_id), fmt::format("lockbench:{}-", run_id)},
                  stop);
  }

 private:
  StoreResult<std::size_t> remove(const std::vector<std::string>& prefixes,
                                  const std::stop_token& stop) {
    etcd_.close();
    return remove_in_batches(prefixes, 1, display(), stop, [&](auto one) {
      return etcd_.remove_prefix(one.front(), one.front(), stop);
    });
  }

  std::unique_ptr<Env> env_;
  Connection etcd_;
};

const StoreRegistration etcd_store({
    .name = "etcd",
    .value_name = "URL",
    .help = "use this etcd instead of a private one: "
            "etcd://[user:password@]host[:port][,host[:port]...], https:// for TLS",
    .display = display_of<parse_endpoint>,
    .secrecy =
        [](const std::string& url) {
          return secrecy_by_scheme(parse_endpoint(url).value(), "https://");
        },
    .make = make_store<parse_endpoint, EtcdStore>,
});

}  // namespace
}  // namespace lockbench::etcd
