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

/// One session with a ZooKeeper ensemble, through its C library, which has two threads: one talks
/// to the server, the other calls back. Used by one thread, except where noted. Constructing it
/// does not connect. The library reconnects by itself within the session; after the server has
/// ended the session, connect() begins another. Reports each request to its Env. Owned by a
/// shared_ptr, as the keeper closes sessions whose server does not answer.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `keeper` keeps the leases' validity up to date; may be null. `clock` is for the library's
  /// callback thread.
  Session(Endpoint endpoint, Duration command_timeout, Env& env, std::unique_ptr<Env> clock,
          SessionKeeper* keeper);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns once there is a session whose server answers. Begins one with the session timeout
  /// `ttl` unless there is one; replaces a session with another timeout if no lease is bound to it.
  /// Failures are of kind `not_sent`. Gives up at once if all servers refuse connections, unless an
  /// existing session may go on.
  StoreResult<void> connect(Duration ttl, const std::stop_token& stop = {});

  /// Pipelines the requests and waits for the answers; ZooKeeper keeps their order. Fails as a
  /// whole: `unanswered` if some may have taken effect, `rejected` if the first was and none has.
  /// After a stop, answers under way are given a moment to arrive.
  StoreResult<std::vector<Reply>> call(std::span<const Request> requests, std::string_view key,
                                       const std::stop_token& stop = {});

  /// From now on a change of the watched node at `path`, or a problem with the session, ends the
  /// next wait. Covers one wait only.
  void listen(std::string path);
  WaitResult wait(TimePoint deadline, const std::stop_token& stop);

  /// A lease on the node at `path`. It is valid for as long as the server is known to keep the
  /// session, and lost with the session or when a watch reports that the node is gone. Null if the
  /// session has, or may have, ended.
  std::shared_ptr<LeaseState> bind(std::string path);
  /// False if it was not bound, or no longer.
  bool unbind(const std::shared_ptr<LeaseState>& lease);
  bool is_bound(std::string_view path) const;
  bool has_leases() const;

  bool connected() const;
  /// The session with this number has ended, with all its ephemeral nodes.
  bool is_over(std::uint64_t number) const;
  /// Changes with every session; 0 before the first.
  std::uint64_t number() const;
  /// The id that ZooKeeper names as an ephemeral node's owner.
  std::int64_t id() const;

  /// Ends the session, at the server too if it can be reached. Its leases are lost. Must be called
  /// before anything that the session uses is destroyed.
  void close();
  std::string_view display() const { return display_; }

  /// On the keeper's thread, with its Env: pings the server if leases are bound and a third of the
  /// session timeout has passed without an answer.
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
  StoreResult<std::vector<Reply>> replies_of(const Batch& batch) const;
  bool send_ping(const Request& request, TimePoint now);
  /// Returns the library's code. On a failure nothing is called back.
  static int send(const std::shared_ptr<Connection>& connection, const Request& request,
                  const std::shared_ptr<Batch>& batch, std::size_t index);
  CommandInfo info_of(const Request& request, std::string_view key) const;
  /// Waits for as long as one answer may take; false if the condition is not true by then.
  bool await(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
             const std::function<bool()>& until);
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const;

  // On the library's callback thread, or on the thread that closes the session.
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
  Duration timeout_{};   ///< as granted by the server
  TimePoint contact_{};  ///< when the latest answered request was sent
  bool silent_ = false;  ///< an answer since then did not come in time
  std::vector<Bound> bound_;
  std::string listened_to_;
  std::shared_ptr<Event> event_;
  std::shared_ptr<Batch> ping_;  ///< not answered yet
};

}  // namespace lockbench::zookeeper
