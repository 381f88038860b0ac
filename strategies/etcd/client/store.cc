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
    const auto status = etcd_.status();
    if (!status) return tl::unexpected(status.error());
    // With a server that restarts its leader's term ends.
    return StoreFacts{.version = status->version,
                      .instance = fmt::format("term {}", status->raft_term),
                      .cpu_seconds = std::nullopt};
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
    std::size_t removed = 0;
    for (const std::string& prefix : prefixes) {
      if (stop.stop_requested()) return removal_stopped(display());
      const auto deleted = etcd_.remove_prefix(prefix, prefix, stop);
      if (!deleted) return tl::unexpected(deleted.error());
      removed += static_cast<std::size_t>(*deleted);
    }
    return removed;
  }

  std::unique_ptr<Env> env_;
  Connection etcd_;
};

const StoreRegistration etcd_store({
    .name = "etcd",
    .value_name = "URL",
    .help = "use this etcd instead of a private one: "
            "etcd://[user:password@]host[:port][,host[:port]...], https:// for TLS",
    .display = [](const std::string& url) -> StoreKind::Text {
      return parse_endpoint(url).map([](const Endpoint& endpoint) { return endpoint.display(); });
    },
    .secrecy =
        [](const std::string& url) {
          const Endpoint endpoint = parse_endpoint(url).value();
          return secrecy_by_scheme(endpoint.tls != nullptr, !endpoint.password.empty(),
                                   endpoint.hosts, "https://");
        },
    .make = [](const std::string& url, Duration command_timeout) -> std::unique_ptr<Store> {
      return std::make_unique<EtcdStore>(parse_endpoint(url).value(), command_timeout);
    },
});

}  // namespace
}  // namespace lockbench::etcd
