#include "deployment/zookeeper_visitor.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

namespace lockbench::deployment {
namespace {

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

/// A connection of the library's own, in a session that it is given or in a new one.
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

}  // namespace

tl::expected<void, std::string> end_zookeeper_session(const std::string& servers,
                                                      std::int64_t session) {
  const clientid_t identity = identity_of(session);
  Visit visit(servers, &identity);
  if (visit.await_state() == 0) {
    return tl::unexpected(servers + ": no ZooKeeper lets anybody into the session");
  }
  return {};  // it ends with this visit, if it has not already
}

tl::expected<WallTime, std::string> zookeeper_wall_time(const std::string& servers) {
  Visit visit(servers, nullptr);
  if (visit.await_state() != ZOO_CONNECTED_STATE) {
    return tl::unexpected(servers + ": no ZooKeeper answers");
  }
  Stat stat{};
  const int code = zoo_create2(visit.handle(), "/lockbench-clock-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                               ZOO_EPHEMERAL_SEQUENTIAL, nullptr, 0, &stat);
  if (code != ZOK) return tl::unexpected(servers + ": " + zerror(code));
  return WallTime(std::chrono::milliseconds(stat.ctime));
}

}  // namespace lockbench::deployment
