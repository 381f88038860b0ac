#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/lease.h"
#include "strategies/zookeeper/client/endpoint.h"
#include "strategies/zookeeper/client/requests.h"

namespace lockbench::zookeeper {

class SessionKeeper;

/// One session with a ZooKeeper, by its own C library, which brings two threads: one that talks to
/// the server, and one that calls back. Used by one thread, but for what is said to be any's.
/// Constructing it does not connect. The library reconnects within the session by itself; when the
/// server has ended it, it is over, and connect() begins another. Reports each of its requests to
/// its Env. Owned by a shared_ptr, as the end of a session whose server is silent is left to the
/// keeper.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `keeper`, where there is one, keeps what is known of the end of leases up to date. `clock` is
  /// for the thread that calls back.
  Session(Endpoint endpoint, Duration command_timeout, Env& env, std::unique_ptr<Env> clock,
          SessionKeeper* keeper);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns once there is a session whose server answers. Begins one that is to outlive silence of
  /// `ttl`, unless there is one already; makes it anew for another ttl as long as no lease is bound
  /// to it. Failures are of kind `not_sent`. A server that refuses all connections is given up at
  /// once, unless the session is one that may go on.
  StoreResult<void> connect(Duration ttl, const std::stop_token& stop = {});

  /// Sends the requests at once, and waits for the answers, which come in the same order: ZooKeeper
  /// keeps it. Fails as a whole: `unanswered` where some may have taken effect, `rejected` where
  /// the first was, and nothing has. A stop leaves answers that are on their way a moment to
  /// arrive.
  StoreResult<std::vector<Reply>> call(std::span<const Request> requests, std::string_view key,
                                       const std::stop_token& stop = {});

  /// From now on a change of the node at `path` that a request watches, or any trouble with the
  /// session, ends the next wait. Not kept up after that.
  void listen(std::string path);
  WaitResult wait(TimePoint deadline, const std::stop_token& stop);

  /// A lease on the node at `path`, which is valid for as long as the server is known to keep the
  /// session, and lost with the session, or when a watch tells that the node has gone. Null if the
  /// session is over, or may be.
  std::shared_ptr<LeaseState> bind(std::string path);
  /// False if it was not bound (any more).
  bool unbind(const std::shared_ptr<LeaseState>& lease);
  bool is_bound(std::string_view path) const;
  bool has_leases() const;

  bool connected() const;
  /// The session that `number` was the number of has ended, with all its ephemeral nodes.
  bool is_over(std::uint64_t number) const;
  /// Changes with every session; 0 before the first.
  std::uint64_t number() const;
  /// As nodes name their owner.
  std::int64_t id() const;

  /// Ends the session, for the server too if it can be reached. Leases bound to it are lost. Must
  /// come before the destruction of what the session uses.
  void close();
  std::string_view display() const { return display_; }

  /// For the keeper's thread, and in its world: asks the server for a sign of life if leases are
  /// bound and a third of the session's time has passed without one.
  void keep_alive(Env& env);

 private:
  enum class State { none, connecting, connected, over };
  struct Connection;
  struct Slot;
  struct Callbacks;

  StoreResult<void> open(Duration ttl, const std::stop_token& stop);
  StoreResult<void> await_first_answer(const std::stop_token& stop);
  StoreResult<void> await_reconnection(const std::stop_token& stop);
  StoreResult<std::vector<Reply>> exchange(std::span<const Request> requests,
                                           const std::stop_token& stop);
  StoreResult<std::vector<Reply>> understood(const Batch& batch) const;
  bool send_sign_of_life(const Request& request, TimePoint now);
  /// Or nothing else happens than that the code is returned.
  static int send(const std::shared_ptr<Connection>& connection, const Request& request,
                  const std::shared_ptr<Batch>& batch, std::size_t index);
  CommandInfo told(const Request& request, std::string_view key) const;
  /// For as long as one answer may take; false if it has not come true by then.
  bool await(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
             const std::function<bool()>& until);
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const;

  // On the library's calling thread, or by the thread that closes it.
  void on_session(const Connection& from, int state, Duration timeout, std::int64_t id);
  void on_node(const Connection& from, int event, std::string_view path);
  void on_answer(const Slot& slot, int code, Reply reply);

  // Under mutex_:
  void end_locked(TimePoint now);
  void confirm_locked(TimePoint sent_at);
  void wake_locked();

  struct Bound {
    std::string path;
    std::shared_ptr<LeaseState> state;
  };

  const Endpoint endpoint_;
  const std::string display_;
  const Duration command_timeout_;
  Env& env_;
  const std::unique_ptr<Env> clock_;
  SessionKeeper* const keeper_;
  Duration asked_ttl_{};  ///< of the present session

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // Under mutex_:
  std::shared_ptr<Connection> connection_;
  State state_ = State::none;
  std::uint64_t number_ = 0;
  std::int64_t id_ = 0;
  Duration timeout_{};   ///< as the server grants it
  TimePoint contact_{};  ///< when the latest request left that was answered
  bool silent_ = false;  ///< an answer since then has not come in time
  std::vector<Bound> bound_;
  std::string listened_to_;
  std::shared_ptr<Event> event_;
  std::shared_ptr<Batch> beat_;  ///< the sign of life that is asked for
};

}  // namespace lockbench::zookeeper
