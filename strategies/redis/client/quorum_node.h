#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "strategies/observer.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// What every node of a quorum is asked to do.
struct NodeRequest {
  enum class Kind { acquire, renew, release };
  Kind kind = Kind::acquire;
  std::string key, token;
  Duration ttl{};  ///< of `release`: after which the lock will have expired at the latest
};
using NodeRequestPtr = std::shared_ptr<const NodeRequest>;

/// One client's use of one of the independent servers that a lock lives on. Requests are pipelined;
/// late answers are read when there is time. Locks that a node may still hold are released once it
/// can be reached again. For one thread.
class QuorumNode {
 public:
  struct Answer {
    Vote vote = Vote::failed;
    bool may_have_taken_effect = false;  ///< of a failed request
  };

  /// `number` is the node's place in the quorum; after `answer_timeout` without an answer the
  /// connection is closed.
  QuorumNode(int number, std::unique_ptr<Connection> connection, Duration answer_timeout,
             StrategyObserver& observer, Env& env);

  StoreResult<void> connect(const std::stop_token& stop) { return connection_->connect(stop); }

  /// Whether it can be asked: connected (waits at most `connect_within` for that), and not with
  /// many requests unanswered. Reads answers that are overdue by more than `max_silence` before.
  bool ready(Duration max_silence, Duration connect_within = {}, const std::stop_token& stop = {});

  /// Sends a request to a node that is ready, and waits for this answer only.
  void ask(const NodeRequestPtr& request);
  /// Does not send the request. A release of a lock that the node may hold is sent later.
  void skip(const NodeRequestPtr& request);
  /// Whether the node may hold the lock with this token.
  bool may_hold(std::string_view token) const { return requested_.contains(token); }

  /// The awaited answer, if it has come.
  std::optional<Answer> answer();
  /// The awaited answer did not come in time.
  void give_up(Duration waited);
  /// Answers from now on are late.
  void stop_waiting() { awaited_ = nullptr; }

  /// To poll for input while an answer is awaited; -1: the answer is there already.
  int descriptor() const { return connection_->descriptor(); }
  /// Why it failed last: one line that names the node.
  const std::string& failure() const { return failure_; }
  /// Releases that could not be sent yet.
  std::size_t pending_releases() const { return pending_.size(); }
  /// Sends them if that does not take a wait.
  void send_pending_releases();

 private:
  struct Sent {
    NodeRequestPtr request;
    TimePoint sent_at{};
    bool with_source = false;  ///< its script was sent in full
  };
  struct PendingRelease {
    NodeRequestPtr request;
    TimePoint until{};  ///< the lock will have expired by then
  };

  void send(const NodeRequestPtr& request);
  void add_pending(const NodeRequestPtr& request);
  bool& knows_script_of(const NodeRequest& request);
  /// Reads what has come in. `failed_only`: only if the connection broke, which fails what was
  /// sent.
  void read_answers(bool failed_only);
  /// Handles the answer to the oldest request; returns it if it was awaited.
  std::optional<Answer> settle(StoreResult<Reply> reply);
  void note_failure(const StoreError& error, const NodeRequestPtr& request);
  /// Reads answers if one is overdue, or there is no room for more. Closes the connection after the
  /// answer timeout.
  void read_overdue(Duration max_silence);

  const int number_;
  std::unique_ptr<Connection> connection_;
  const Duration answer_timeout_;
  StrategyObserver& observer_;
  Env& env_;
  std::deque<Sent> sent_;  ///< and not answered, oldest first
  std::deque<PendingRelease> pending_;
  /// Acquire requests that were not released yet, by token.
  std::unordered_map<std::string_view, NodeRequestPtr> requested_;
  NodeRequestPtr awaited_;
  /// By kind of request: scripts that an answer on this connection proved known to the server.
  /// Until then they are sent in full, as a NOSCRIPT answer may come when nobody reads it any more.
  std::array<bool, 3> known_scripts_{};
  bool broken_ = false;  ///< the connection broke: everything sent on it is one failure
  std::string failure_;
};

}  // namespace lockbench::redis
