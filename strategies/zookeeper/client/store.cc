#include "strategies/store.h"

#include <fmt/format.h>

#include <array>

#include "strategies/transport/socket.h"
#include "strategies/zookeeper/client/session.h"

namespace lockbench::zookeeper {
namespace {

/// Of this store's own session, which holds no locks.
constexpr Duration kTtl = std::chrono::seconds(10);

/// The server's version, by the command "srvr", which can be switched off. `tls` may be null.
/// Nothing without an answer within the timeout.
std::optional<std::string> version_of(const HostPort& server, const TlsSettings* tls,
                                      Duration timeout) {
  const auto socket = connect_socket({.host = server.host, .port = server.port}, timeout, {}, tls);
  if (!socket || (*socket)->send("srvr", timeout) != Transport::Status::ok) {
    return std::nullopt;
  }
  std::string answer;
  std::array<char, 1024> bytes{};
  // The version is in the first line.
  while (answer.find('\n') == std::string::npos && answer.size() < bytes.size()) {
    const auto got = (*socket)->receive(bytes, timeout, {});
    if (got.status != Transport::Status::ok) break;
    answer.append(bytes.data(), got.bytes);
  }
  return version_in(answer);
}

class ZookeeperStore : public Store {
 public:
  ZookeeperStore(const Endpoint& endpoint, Duration command_timeout)
      : endpoint_(endpoint),
        timeout_(command_timeout),
        env_(make_system_env(0)),
        session_(endpoint_, timeout_, *env_, nullptr) {}
  ~ZookeeperStore() override { session_.close(); }

  std::string display() const override { return endpoint_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    session_.close();
    return session_.connect(kTtl, stop);
  }

  StoreResult<StoreFacts> facts() override {
    // Always asks the same server, to notice its restart: a server numbers the sessions that it
    // begins from a number set at its start, and the lower 16 bits count.
    constexpr int kCountingBits = 16;
    Endpoint first = endpoint_;
    first.hosts.resize(1);
    Session session(first, timeout_, *env_, nullptr);
    if (auto connected = session.connect(kTtl); !connected) {
      return tl::unexpected(connected.error());
    }
    const auto number = static_cast<std::uint64_t>(session.id());
    session.close();
    return StoreFacts{
        .version = version_of(first.hosts.front(), first.tls.get(), timeout_).value_or("unknown"),
        .instance = std::to_string(number >> kCountingBits)};
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token& stop) override {
    std::vector<std::string> nodes;
    nodes.reserve(keys.size());
    for (const std::string& key : keys) nodes.push_back(node_of_key(key));
    return remove(nodes, stop);
  }

  StoreResult<std::size_t> remove_run(std::string_view run_id,
                                      const std::stop_token& stop) override {
    const std::string root(parent_of(run_path(run_id)));
    const Replies runs = ask({{Request::Kind::children, root}}, stop);
    if (!runs) return tl::unexpected(runs.error());
    std::size_t count = 0;
    for (const std::string& name : runs->front().children) {
      if (!is_of_run(name, run_id)) continue;
      auto removed = remove_part(fmt::format("{}/{}", root, name), stop);
      if (!removed) return removed;
      count += *removed;
    }
    // It stays while other runs are below it.
    if (const Replies last = ask({{Request::Kind::remove, root}}, stop); !last) {
      return tl::unexpected(last.error());
    }
    return count;
  }

 private:
  using Replies = StoreResult<std::vector<Reply>>;

  Replies ask(const std::vector<Request>& requests, const std::stop_token& stop) {
    if (stop.stop_requested()) return removal_stopped(display());
    // A session that idled through a run may belong to a server that is gone.
    if (auto connected = session_.connect(kTtl); !connected) {
      return tl::unexpected(connected.error());
    }
    return session_.call(requests, {});
  }

  /// Removes the node of a run and all below it; returns the number of keys.
  StoreResult<std::size_t> remove_part(const std::string& run, const std::stop_token& stop) {
    const Replies keys = ask({{Request::Kind::children, run}}, stop);
    if (!keys) return tl::unexpected(keys.error());
    std::vector<std::string> nodes;
    for (const std::string& name : keys->front().children) {
      nodes.push_back(fmt::format("{}/{}", run, name));
    }
    auto removed = remove(nodes, stop);
    if (!removed) return removed;
    return remove_all(std::span(&run, 1), stop).map([&] { return *removed; });
  }

  /// Removes these nodes and all below them; returns how many of these existed.
  StoreResult<std::size_t> remove(std::span<const std::string> nodes, const std::stop_token& stop) {
    const auto remove_some = [&](auto some) -> StoreResult<std::size_t> {
      std::vector<Request> looks;
      for (const std::string& node : some) looks.push_back({Request::Kind::children, node});
      const Replies children = ask(looks, stop);
      if (!children) return tl::unexpected(children.error());
      std::vector<std::string> found;
      std::size_t count = 0;
      for (std::size_t i = 0; i < some.size(); ++i) {
        for (const std::string& child : children->at(i).children) {
          found.push_back(some[i] + "/" + child);
        }
        if (!children->at(i).done()) continue;
        found.push_back(some[i]);
        ++count;
      }
      return remove_all(found, stop).map([&] { return count; });
    };
    return remove_in_batches(nodes, kBatch, display(), stop, remove_some);
  }

  /// In this order; absent nodes count as removed.
  StoreResult<void> remove_all(std::span<const std::string> nodes, const std::stop_token& stop) {
    const auto remove_some = [&](auto some) -> StoreResult<std::size_t> {
      std::vector<Request> removals;
      for (const std::string& node : some) removals.push_back({Request::Kind::remove, node});
      const Replies removed = ask(removals, stop);
      if (!removed) return tl::unexpected(removed.error());
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (removed->at(i).code != Code::not_empty) continue;
        return failure_at(display(), StoreError::Kind::rejected, some[i] + " is in use");
      }
      return some.size();
    };
    return remove_in_batches(nodes, kBatch, display(), stop, remove_some).map([](std::size_t) {});
  }

  /// Bounds the requests under way.
  static constexpr std::size_t kBatch = 200;

  const Endpoint endpoint_;
  const Duration timeout_;
  const std::unique_ptr<Env> env_;
  Session session_;
};

const StoreRegistration zookeeper_store({
    .name = "zookeeper",
    .value_name = "HOSTS",
    .help = "use this ZooKeeper instead of a private one: "
            "[zk://[user:password@]]host[:port][,host[:port]...][/chroot], or zks:// for TLS",
    .display = display_of<parse_endpoint>,
    .secrecy =
        [](const std::string& url) {
          return secrecy_by_scheme(parse_endpoint(url).value(), "zks://");
        },
    .make = make_store<parse_endpoint, ZookeeperStore>,
});

}  // namespace
}  // namespace lockbench::zookeeper
