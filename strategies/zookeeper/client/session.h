#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/lease.h"
#include "strategies/transport/poller.h"
#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"

namespace lockbench::zookeeper {

class Session;

/// Looks after all sessions of a run while their clients do other things: pings, reconnects, and
/// receives the events that clients wait for. One task, started beside the client with the first
/// session. Thread-safe; outlives its sessions.
class SessionKeeper {
 public:
  /// Of sessions whose connections the dialer opens.
  explicit SessionKeeper(std::unique_ptr<Env> env, Dialer& dialer = Dialer::real())
      : env_(std::move(env)), dialer_(dialer) {}
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  /// The error says why sessions cannot be looked after.
  tl::expected<void, std::string> add(Session& session);
  /// Waits while the session is attended.
  void remove(Session& session);

  /// Attends the session, which was added, once its connection has input. Covers one time only.
  void watch(Session& session, int descriptor);
  void unwatch(int descriptor) { poller_->unwatch(descriptor); }

 private:
  void keep(const std::stop_token& stop);
  /// Unlocks the mutex meanwhile.
  void attend(Session* session, std::unique_lock<std::mutex>& lock);
  /// Sets when it is attended next.
  void schedule(Session& session, TimePoint at);

  std::unique_ptr<Env> env_;
  Dialer& dialer_;
  std::unique_ptr<Poller> poller_;  ///< from the first add() on
  std::mutex mutex_;
  /// Sessions due at the same time are in the order of scheduling.
  std::multimap<TimePoint, Session*> by_time_;
  std::map<Session*, std::multimap<TimePoint, Session*>::iterator> due_;  ///< the same
  Session* attended_ = nullptr;
  std::unique_ptr<Task> task_;  ///< last: ends before the members that it uses are destroyed
};

/// One session with a ZooKeeper ensemble. Used by one client, except where noted; during a call the
/// client itself talks to the server, otherwise the keeper does. Constructing it does not connect.
/// It reconnects by itself as long as the session lasts; after its end, connect() begins another.
/// Reports each request to its Env.
class Session {
 public:
  /// `keeper` keeps the session and its leases alive between calls; if it is null they end by
  /// themselves, and a wait ends only by its deadline. Without a connector, by sockets.
  Session(Endpoint endpoint, const Timeouts& timeouts, Env& env, SessionKeeper* keeper,
          Connector connector = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Returns once there is a session whose server answers. Begins one with the session timeout
  /// `ttl` unless there is one; replaces a session with another timeout if no lease is bound to it.
  /// Failures are of kind `not_sent`. Gives up immediately if all servers refuse connections,
  /// unless an existing session may go on.
  StoreResult<void> connect(Duration ttl, const std::stop_token& stop = {});

  /// Whether a call fails if the server refuses one of its requests.
  enum class Refusal { fails, is_an_answer };
  /// Pipelines the requests and waits for the answers; ZooKeeper keeps their order. Fails as a
  /// whole: `unanswered` if some may have taken effect, `rejected` if the server refused the first.
  /// After a stop, answers under way get a moment to arrive.
  StoreResult<std::vector<Reply>> call(std::span<const Request> requests, std::string_view key,
                                       const std::stop_token& stop = {},
                                       Refusal refusal = Refusal::fails);

  /// Without a keeper: the nodes for which `watch_and_count` or `watch_exists` reported a change
  /// since the last call; waits at most `longest` for the first. Must be called often, to keep the
  /// session alive. Fails once the connection is lost, as these watches are not set again.
  StoreResult<std::vector<std::string>> events(Duration longest, const std::stop_token& stop);

  /// From now on a change of the watched node at `path`, or a problem with the session, ends the
  /// next wait. Covers one wait only.
  void listen(std::string path);
  WaitResult wait(TimePoint deadline, const std::stop_token& stop);

  /// A lease on the node at `path`. Valid for as long as the server is known to keep the session;
  /// lost with the session, or when a watch reports that the node is gone. Null if the session has
  /// ended, or may have.
  std::shared_ptr<LeaseState> bind(std::string path);
  /// False if it is not bound.
  bool unbind(const std::shared_ptr<LeaseState>& lease) {
    const std::scoped_lock lock(mutex_);
    return std::erase_if(bound_, [&](const Bound& bound) { return bound.state == lease; }) > 0;
  }
  bool is_bound(std::string_view path) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::find(bound_, path, &Bound::path) != bound_.end();
  }
  bool has_leases() const {
    const std::scoped_lock lock(mutex_);
    return !bound_.empty();
  }

  bool connected() const {
    const std::scoped_lock lock(mutex_);
    return state_ == State::connected;
  }
  /// Whether the session with this number has ended, with all its ephemeral nodes.
  bool is_over(std::uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    return number != number_ || state_ == State::over || state_ == State::none;
  }
  /// Changes with every session; 0 before the first.
  std::uint64_t number() const {
    const std::scoped_lock lock(mutex_);
    return number_;
  }
  /// The session's id, which ZooKeeper shows as an ephemeral node's owner.
  std::int64_t id() const {
    const std::scoped_lock lock(mutex_);
    return identity_.id;
  }

  /// Ends the session, at the server too if it can be reached. Its leases are lost. Must be called
  /// before anything that the session uses is destroyed.
  void close();

  /// Called by the keeper, with its Env: receives, pings if no answer has come for a third of the
  /// session timeout, reconnects. Does not wait. Returns the time until the next call.
  Duration keep(Env& env);

 private:
  enum class State { none, connecting, connected, over };
  class InCall;
  using Lock = std::unique_lock<std::mutex>;

  /// Pipelined requests, and their answers.
  struct Batch {
    Batch(std::size_t size, TimePoint when) : sent_at(when), left(size), answers(size) {}

    const TimePoint sent_at;  ///< before the first was sent
    std::size_t left;         ///< answers to come
    std::vector<Reply> answers;
    std::string why;  ///< the connection was lost
  };
  /// A sent request.
  struct Pending {
    std::int32_t xid = 0;
    Request request;
    std::shared_ptr<Batch> batch;
    std::size_t index = 0;
  };
  struct Ping {
    TimePoint sent_at{};
    std::optional<CommandEnd> end{};
  };
  struct Bound {
    std::string path;
    std::shared_ptr<LeaseState> state;
  };
  /// What is wrong with a packet from the server; nothing if it is right.
  using Wrong = std::optional<std::string>;

  StoreResult<void> open(Duration ttl, const std::stop_token& stop);
  StoreResult<std::vector<Reply>> exchange(std::span<const Request> requests,
                                           const std::stop_token& stop, Refusal refusal);
  StoreResult<std::vector<Reply>> replies_of(const Batch& batch, Refusal refusal) const;
  CommandInfo info_of(std::string_view name, std::string_view key) const {
    return {.store = "zookeeper", .endpoint = display_, .name = name, .key = key};
  }
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  // Everything below requires mutex_; blocking functions release it while they wait.

  /// Waits for the condition, at most as long as one answer may take. False if it is still not
  /// true.
  bool await(Lock& lock, const std::stop_token& stop, const std::function<bool()>& until);
  /// Takes received packets without waiting.
  void look(Lock& lock, Env& env);
  /// Connects, or receives, for at most `longest`; a stop ends only a receive. True if it got
  /// something.
  bool step(Lock& lock, Env& env, Duration longest, const std::stop_token& stop = {});
  /// One step of a client that waits until `give_up_at`.
  void step_until(TimePoint give_up_at, Lock& lock, const std::stop_token& stop);
  tl::unexpected<StoreError> not_connected(const std::stop_token& stop) const;

  void welcome(Greeting greeting, TimePoint now);
  void take_packets(TimePoint now);
  Wrong take(std::string_view packet, TimePoint now);
  Wrong take_answer(const Header& header, Reader& from, TimePoint now);
  void on_node(const NodeEvent& event, TimePoint now);
  void send(std::span<const Request> requests, const std::shared_ptr<Batch>& batch);
  bool send_ping(TimePoint now);
  void end_at_server(Lock& lock);

  /// Drops a broken connection.
  void lose(std::string_view why);
  void give_up_pending(std::string_view why);
  void end(TimePoint now, std::string_view why);
  void confirm(TimePoint sent_at);
  /// Likewise, by an answer of a member that need not be the leader.
  Wrong confirm_in_time(TimePoint sent_at, TimePoint now);
  /// Whether only a greeting, which asks the leader, can prove the session. A follower learns late
  /// that the session has ended, and the leader late what a follower has heard: by half a tick, at
  /// most a quarter of the timeout. ZooKeeper's own client gives its connection up then, too.
  bool is_stale(TimePoint now) const;
  void wake();
  void watch_for_events();
  /// How often a live session is attended.
  Duration tick() const;

  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  SessionKeeper* const keeper_;

  mutable std::mutex mutex_;
  bool in_call_ = false;  ///< only the caller uses the link, except for pings
  Link link_;
  State state_ = State::none;
  std::uint64_t number_ = 0;
  Duration asked_ttl_{};  ///< of the present session
  Identity identity_;
  Duration timeout_{};    ///< as granted by the server
  TimePoint contact_{};   ///< when the latest answered request was sent
  TimePoint heard_{};     ///< when the server last sent anything
  bool silent_ = false;   ///< an answer since `contact_` did not come in time
  std::string why_lost_;  ///< why it lost a connection; empty if it never did
  std::string why_over_;  ///< why the session has ended
  std::int32_t next_xid_ = 1;
  std::deque<Pending> pending_;  ///< answers to come, in order
  std::optional<Ping> ping_;     ///< under way, or not reported yet
  std::vector<Bound> bound_;
  std::set<std::string, std::less<>> watched_;  ///< nodes of which the server will report a change
  bool reports_changes_ = false;                ///< by events()
  std::vector<std::string> changed_;            ///< nodes, for events()
  std::string listened_to_;
  std::shared_ptr<Event> event_;
  bool awaited_ = false;         ///< a client waits for the event
  bool keeper_watches_ = false;  ///< the keeper was asked to watch the connection
};

}  // namespace lockbench::zookeeper
