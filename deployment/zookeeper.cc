#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "deployment/private_store.h"
#include "strategies/zookeeper/client/paths.h"
#include "strategies/zookeeper/client/session.h"
#include "testbed/servers/zookeeper_server.h"

namespace lockbench::deployment {
namespace {

using zookeeper::Reply;
using zookeeper::Request;

constexpr std::chrono::seconds kPatience{5};
constexpr int kSessionMs = 5000;

/// ZooKeeperServer.generatePasswd: sixteen bytes of java.util.Random, seeded with the number and a
/// constant of the source.
clientid_t identity_of(std::int64_t session) {
  constexpr std::uint64_t kConstant = 0xB3415C00, kMultiplier = 0x5DEECE66D, kAddend = 0xB;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;
  constexpr int kUnused = 16, kByte = 8;
  clientid_t identity{.client_id = session, .passwd = {}};
  std::uint64_t state = (static_cast<std::uint64_t>(session) ^ kConstant ^ kMultiplier) & kMask;
  for (std::size_t i = 0; i < sizeof identity.passwd; i += sizeof(std::int32_t)) {
    state = (state * kMultiplier + kAddend) & kMask;
    for (std::size_t byte = 0; byte < sizeof(std::int32_t); ++byte) {
      const auto shift = static_cast<unsigned>(kUnused + kByte * byte);
      identity.passwd[i + byte] = static_cast<char>(state >> shift);
    }
  }
  return identity;
}

/// A connection of the client library, in the given session or in a new one.
class Visit {
 public:
  Visit(const std::string& servers, const clientid_t* identity)
      : handle_(zookeeper_init2(servers.c_str(), on_event, kSessionMs, identity, this,
                                ZOO_NO_LOG_CLIENTENV, ignore_message)) {}
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  /// Ends the session, where there is a connection.
  ~Visit() {
    if (handle_ != nullptr) zookeeper_close(handle_);
  }

  /// ZOO_CONNECTED_STATE, or how it ended; 0: neither in time.
  int await_state() {
    if (handle_ == nullptr) return 0;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return state_ != 0; });
    return state_;
  }
  zhandle_t* handle() { return handle_; }

 private:
  static void ignore_message(const char* /*message*/) {}
  static void on_event(zhandle_t* /*handle*/, int type, int state, const char* /*path*/,
                       void* context) {
    const bool final = state == ZOO_CONNECTED_STATE || state == ZOO_EXPIRED_SESSION_STATE ||
                       state == ZOO_AUTH_FAILED_STATE;
    if (type != ZOO_SESSION_EVENT || !final) return;
    auto& visit = *static_cast<Visit*>(context);
    const std::scoped_lock lock(visit.mutex_);
    visit.state_ = state;
    visit.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int state_ = 0;
  zhandle_t* const handle_;  ///< last: it calls back at once
};

/// Ends another client's session. Its number is enough: the server derives a session's password
/// from the number alone. No error if the session has ended already. If the owner's library
/// reconnects at the same time the session goes on: check, and try again.
void end_other_session(const std::string& servers, std::int64_t session) {
  const clientid_t identity = identity_of(session);
  Visit visit(servers, &identity);
  if (visit.await_state() == 0) {
    throw Failure(servers + ": no server lets us join the session");
  }
  // The session ends with this visit, if it has not already.
}

/// The server's wall clock, read from the time stamp of a new node.
WallTime wall_time_of(const std::string& servers) {
  Visit visit(servers, nullptr);
  if (visit.await_state() != ZOO_CONNECTED_STATE) {
    throw Failure(servers + ": no ZooKeeper answers");
  }
  Stat stat{};
  const int code = zoo_create2(visit.handle(), "/lockbench-clock-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                               ZOO_EPHEMERAL_SEQUENTIAL, nullptr, 0, &stat);
  if (code != ZOK) throw Failure(servers + ": " + zerror(code));
  return WallTime(std::chrono::milliseconds(stat.ctime));
}

/// One ZooKeeper, or an ensemble. Its connections have no bound.
class ZookeeperStore : public PrivateStore {
 public:
  ZookeeperStore(LocalHost& host, const StoreRequest& request)
      : PrivateStore("zookeeper", request.setup != Setup::volatile_, std::chrono::seconds(2)) {
    if (request.members > 1) {
      add_cluster(testbed::start_zookeeper_ensemble(host.testbed(), request.members,
                                                    {.mesh = mesh_for(host, request.setup)}));
      return;
    }
    testbed::ZookeeperOptions options;
    options.clock = clock_for(host, request.setup);
    add(testbed::start_zookeeper(host.testbed(), options));
  }

  void jump_clock(Duration ahead) override {
    PrivateStore::jump_clock(ahead);
    // Whether Java reads the clock through functions that a preloaded library replaces is checked.
    const WallTime now = wall_time_of(urls().front());
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
      end_other_session(urls().front(), held.owner);
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
    .warms_up = true,           // Java compiles what it has run often
    .files_per_connection = 3,  // the client library also keeps a pipe
});

}  // namespace
}  // namespace lockbench::deployment
