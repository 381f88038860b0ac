#include <fmt/format.h>

#include <algorithm>

#include "deployment/private_store.h"
#include "deployment/zookeeper_visitor.h"
#include "strategies/zookeeper/client/paths.h"
#include "strategies/zookeeper/client/session.h"
#include "testbed/servers/zookeeper_server.h"

namespace lockbench::deployment {
namespace {

using zookeeper::Reply;
using zookeeper::Request;

/// One ZooKeeper, or an ensemble. Its connections have no bound.
class ZookeeperStore : public PrivateStore {
 public:
  ZookeeperStore(LocalHost& host, const StoreRequest& request)
      : PrivateStore("zookeeper", request.setup != Setup::volatile_, std::chrono::seconds(2)) {
    if (request.members > 1) {
      add_cluster(testbed::start_zookeeper_ensemble(host.testbed(), request.members));
      return;
    }
    testbed::ZookeeperOptions options;
    options.clock = clock_for(host, request.setup);
    add(testbed::start_zookeeper(host.testbed(), options));
  }

  void jump_clock(Duration ahead) override {
    PrivateStore::jump_clock(ahead);
    // Whether Java reads the clock through functions that a preloaded library replaces is checked.
    const WallTime now = need(zookeeper_wall_time(urls().front()));
    if (now - std::chrono::system_clock::now() < ahead / 2) {
      throw Failure("the server does not use the clock that it was given");
    }
  }

  void end_session(const std::string& key) override {
    // The owner's library may reconnect in between.
    constexpr int kAttempts = 20;
    const auto visit = std::make_shared<zookeeper::Session>(
        *zookeeper::parse_endpoint(urls().front()), std::chrono::seconds(5), *env_,
        make_system_env(0), nullptr);
    const std::string node = node_of_holder(*visit, key);
    const Reply held = ask(*visit, Request::Kind::look, node);
    if (!held.done()) throw Failure("nobody holds the lock");
    for (int i = 0; i < kAttempts; ++i) {
      need(end_zookeeper_session(urls().front(), held.owner));
      // A waiter may have created the node again already.
      const Reply now = ask(*visit, Request::Kind::look, node);
      if (!now.done() || now.owner != held.owner) return visit->close();
    }
    throw Failure("the session cannot be ended: its owner always comes back in time");
  }

 private:
  static Reply ask(zookeeper::Session& visit, Request::Kind kind, const std::string& path) {
    need(visit.connect(std::chrono::seconds(5)));
    const Request request{.kind = kind, .path = path};
    return std::move(need(visit.call({&request, 1}, {})).front());
  }

  /// The lock's own node, or the first in its queue.
  static std::string node_of_holder(zookeeper::Session& visit, const std::string& key) {
    const std::string lock = zookeeper::node_of_key(key);
    auto queue = ask(visit, Request::Kind::children, lock).children;
    std::erase_if(queue, [](const auto& name) { return !zookeeper::sequence_of(name); });
    const auto first = std::min_element(queue.begin(), queue.end(), [](auto& one, auto& other) {
      return *zookeeper::sequence_of(one) < *zookeeper::sequence_of(other);
    });
    return first == queue.end() ? lock : lock + "/" + *first;
  }

  const std::unique_ptr<Env> env_ = make_system_env(0);
};

const PrivateStoreRegistration registration({
    .name = "zookeeper",
    .program = testbed::kZookeeper,
    .find_program = testbed::find_zookeeper,
    .version = testbed::zookeeper_version,
    .start = [](LocalHost& host, const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::cramped) throw NotOffered("ZooKeeper evicts nothing");
      return std::make_unique<ZookeeperStore>(host, request);
    },
    .clusters = true,
    .files_per_connection = 3,  // its library keeps a pipe besides
});

}  // namespace
}  // namespace lockbench::deployment
