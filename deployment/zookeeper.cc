#include <algorithm>

#include "deployment/private_store.h"
#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"
#include "strategies/zookeeper/client/session.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

using zookeeper::Reply;
using zookeeper::Request;

constexpr std::chrono::seconds kPatience{5};

/// ZooKeeperServer.generatePasswd: sixteen bytes of java.util.Random, seeded with the number and a
/// constant of the source.
std::string password_of(std::int64_t session) {
  constexpr std::uint64_t kConstant = 0xB3415C00, kMultiplier = 0x5DEECE66D, kAddend = 0xB;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;
  constexpr unsigned kUnused = 16, kByte = 8;
  constexpr std::size_t kSize = 16;
  std::string password;
  std::uint64_t state = (static_cast<std::uint64_t>(session) ^ kConstant ^ kMultiplier) & kMask;
  while (password.size() < kSize) {
    state = (state * kMultiplier + kAddend) & kMask;
    for (unsigned byte = 0; byte < sizeof(std::int32_t); ++byte) {
      password += static_cast<char>(state >> (kUnused + kByte * byte));
    }
  }
  return password;
}

/// Ends another client's session. Its number is enough: the server derives the password from it. No
/// error if the session has ended already. If its owner reconnects at the same time, the session
/// goes on: check, and try again.
void end_other_session(const zookeeper::Endpoint& servers, std::int64_t session, Env& env) {
  const zookeeper::Identity identity{.id = session, .password = password_of(session)};
  zookeeper::Link link(servers, env);
  link.begin(kPatience);
  const TimePoint give_up_at = env.now() + kPatience;
  std::optional<zookeeper::Greeting> greeting;
  while (!greeting) {
    if (env.now() >= give_up_at) {
      throw Failure(servers.display() + ": no server lets us join the session");
    }
    greeting = link.advance(identity, kPatience, env, zookeeper::Packets::kPace);
  }
  if (greeting->timeout <= Duration::zero()) return;
  link.packets().send(zookeeper::end_session(1));
  // The server answers and closes the connection.
  while (env.now() < give_up_at) {
    const auto status = link.packets().receive(zookeeper::Packets::kPace);
    if (status != Transport::Status::timed_out) return;
  }
}

/// One ZooKeeper, or an ensemble. It does not bound the number of connections.
class ZookeeperStore : public PrivateStore {
 public:
  ZookeeperStore(testbed::Testbed& host, const StoreRequest& request)
      : PrivateStore("zookeeper", request.setup != Setup::volatile_, kShortestSession) {
    if (request.members > 1) {
      add_cluster(testbed::start_zookeeper_ensemble(
          host, request.members, {.mesh = mesh_for(host, request.setup), .tls = host.tls()}));
      return;
    }
    testbed::ZookeeperOptions options{.tls = host.tls()};
    options.clock = clock_for(host, request.setup);
    add(testbed::start_zookeeper(host, options));
  }

  void jump_clock(Duration ahead) override {
    PrivateStore::jump_clock(ahead);
    // Checks that Java reads the clock through the functions of the preloaded library.
    zookeeper::Session visit(endpoint(), kPatience, *env_, nullptr);
    const Reply made = ask(visit, Request::Kind::make_sequential, "/lockbench-clock-");
    visit.close();
    const WallTime now{std::chrono::milliseconds(made.made_at_ms)};
    if (now - std::chrono::system_clock::now() < ahead / 2) {
      throw Failure("the server ignores its moved clock");
    }
  }

  void end_session(const std::string& key) override {
    // The owner may reconnect between the steps.
    constexpr int kAttempts = 20;
    zookeeper::Session visit(endpoint(), kPatience, *env_, nullptr);
    const std::string node = node_of_holder(visit, key);
    const Reply held = ask(visit, Request::Kind::look, node);
    if (!held.done() || held.owner == 0) throw Failure("nobody holds the lock");
    for (int i = 0; i < kAttempts; ++i) {
      end_other_session(endpoint(), held.owner, *env_);
      // A waiter may have created the node again.
      const Reply now = ask(visit, Request::Kind::look, node);
      if (!now.done() || now.owner != held.owner) return visit.close();
    }
    throw Failure("the session cannot be ended: its owner always reconnects in time");
  }

 private:
  zookeeper::Endpoint endpoint() const { return *zookeeper::parse_endpoint(urls().front()); }

  static Reply ask(zookeeper::Session& visit, Request::Kind kind, const std::string& path) {
    need(visit.connect(kPatience));
    const Request request{.kind = kind, .path = path};
    return std::move(need(visit.call({&request, 1}, {})).front());
  }

  /// The lock's own node, or the first in its queue.
  static std::string node_of_holder(zookeeper::Session& visit, const std::string& key) {
    const std::string lock = zookeeper::node_of_key(key);
    auto queue = ask(visit, Request::Kind::children, lock).children;
    std::erase_if(queue, [](const auto& name) { return !zookeeper::sequence_of(name); });
    const auto first = std::ranges::min_element(queue, {}, zookeeper::sequence_of);
    return first == queue.end() ? lock : lock + "/" + *first;
  }

  const std::unique_ptr<Env> env_ = make_system_env(0);
};

const PrivateStoreRegistration private_zookeeper({
    .name = "zookeeper",
    .program = testbed::kZookeeper,
    .find_program = testbed::find_zookeeper,
    .version = testbed::zookeeper_version,
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::cramped) throw NotOffered("ZooKeeper evicts nothing");
      return std::make_unique<ZookeeperStore>(host, request);
    },
    .clusters = true,
    .warms_up = true,  // Java compiles frequently run code
});

}  // namespace
}  // namespace lockbench::deployment
