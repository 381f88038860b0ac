#include "strategies/store.h"

#include <fmt/format.h>

#include "strategies/zookeeper/client/paths.h"
#include "strategies/zookeeper/client/session.h"
#include "strategies/zookeeper/client/version.h"

namespace lockbench::zookeeper {
namespace {

/// Of the session that looks after a run, which holds nothing.
constexpr Duration kTtl = std::chrono::seconds(10);

class ZookeeperStore : public Store {
 public:
  ZookeeperStore(const Endpoint& endpoint, Duration command_timeout)
      : endpoint_(endpoint),
        timeout_(command_timeout),
        env_(make_system_env(0)),
        session_(make_session(endpoint)) {}
  ~ZookeeperStore() override { session_->close(); }

  std::string display() const override { return endpoint_.display(); }

  StoreResult<void> reach(const std::stop_token& stop) override {
    session_->close();
    return session_->connect(kTtl, stop);
  }

  StoreResult<StoreFacts> facts() override {
    // Of one server, always the same: sessions are numbered by the server that begins them, from a
    // number on that its start determines, and the lower 16 bits count.
    constexpr int kCountingBits = 16;
    Endpoint first = endpoint_;
    first.servers.resize(1);
    const auto session = make_session(first);
    if (auto connected = session->connect(kTtl); !connected) {
      return tl::unexpected(connected.error());
    }
    const auto number = static_cast<std::uint64_t>(session->id());
    session->close();
    return StoreFacts{.version = version_of(first.servers.front(), timeout_).value_or("unknown"),
                      .instance = std::to_string(number >> kCountingBits),
                      .cpu_seconds = std::nullopt};
  }

  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys) override {
    std::vector<std::string> nodes;
    nodes.reserve(keys.size());
    for (const std::string& key : keys) nodes.push_back(node_of_key(key));
    return remove(nodes);
  }

  StoreResult<void> remove_run(std::string_view run_id) override {
    const std::string run = run_path(run_id);
    const auto replies = ask({{Request::Kind::children, run}});
    if (!replies) return tl::unexpected(replies.error());
    std::vector<std::string> nodes;
    for (const std::string& name : replies->front().children)
      nodes.push_back(fmt::format("{}/{}", run, name));
    if (auto removed = remove(nodes); !removed) return tl::unexpected(removed.error());
    // The root stays while other runs are below it.
    const auto removed =
        ask({{Request::Kind::remove, run}, {Request::Kind::remove, std::string(parent_of(run))}});
    if (!removed) return tl::unexpected(removed.error());
    return {};
  }

 private:
  using Replies = StoreResult<std::vector<Reply>>;

  std::shared_ptr<Session> make_session(const Endpoint& endpoint) {
    return std::make_shared<Session>(endpoint, timeout_, *env_, make_system_env(0), nullptr);
  }

  Replies ask(const std::vector<Request>& requests) {
    // A session that idled through a run may be one of a server that is gone.
    if (auto connected = session_->connect(kTtl); !connected) {
      return tl::unexpected(connected.error());
    }
    return session_->call(requests, {});
  }

  /// These nodes, and what is below them; how many of them were there.
  StoreResult<std::size_t> remove(std::span<const std::string> nodes) {
    // Bounds what is under way at once.
    constexpr std::size_t kBatch = 200;
    std::size_t count = 0;
    for (std::size_t from = 0; from < nodes.size(); from += kBatch) {
      const auto some = nodes.subspan(from, std::min(kBatch, nodes.size() - from));
      std::vector<Request> looks;
      for (const std::string& node : some) looks.push_back({Request::Kind::children, node});
      const Replies children = ask(looks);
      if (!children) return tl::unexpected(children.error());
      std::vector<Request> removals;
      for (std::size_t i = 0; i < some.size(); ++i) {
        for (const std::string& child : children->at(i).children) {
          removals.push_back({Request::Kind::remove, some[i] + "/" + child});
        }
        if (!children->at(i).done()) continue;
        removals.push_back({Request::Kind::remove, some[i]});
        ++count;
      }
      if (removals.empty()) continue;
      if (const Replies removed = ask(removals); !removed) return tl::unexpected(removed.error());
    }
    return count;
  }

  const Endpoint endpoint_;
  const Duration timeout_;
  std::unique_ptr<Env> env_;
  const std::shared_ptr<Session> session_;
};

const StoreRegistration registration({
    .name = "zookeeper",
    .value_name = "HOSTS",
    .help = "use this ZooKeeper instead of a private one: "
            "[zk://[user:password@]]host[:port][,host[:port]...][/chroot]",
    .display = [](const std::string& url) -> StoreKind::Text {
      return parse_endpoint(url).map([](const Endpoint& endpoint) { return endpoint.display(); });
    },
    .make = [](const std::string& url, Duration command_timeout) -> std::unique_ptr<Store> {
      return std::make_unique<ZookeeperStore>(parse_endpoint(url).value(), command_timeout);
    },
});

}  // namespace
}  // namespace lockbench::zookeeper
