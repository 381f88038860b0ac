#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "strategies/observer.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/redis/scripts.h"

namespace lockbench::redis {

/// A request to every node of a quorum.
struct NodeRequest {
  enum class Kind { acquire, renew, release };
  Kind kind = Kind::acquire;
  std::string key, token;
  Duration ttl{};  ///< of `release`: at its end the lock has expired for certain
};
using NodeRequestPtr = std::shared_ptr<const NodeRequest>;

/// One client's use of one of the independent servers that a lock lives on. Requests are pipelined;
/// late answers are read when there is time. Locks that a node may still hold are released once it
/// can be reached again. For one thread.
class QuorumNode {
 public:
  /// `number` is the node's place in the quorum; after `answer_timeout` without an answer the
  /// connection is closed.
  QuorumNode(int number, std::unique_ptr<Connection> connection, Duration answer_timeout,
             StrategyObserver& observer, Env& env)
      : number_(number),
        connection_(std::move(connection)),
        answer_timeout_(answer_timeout),
        observer_(observer),
        env_(env) {}

  StoreResult<void> connect(const std::stop_token& stop) { return connection_->connect(stop); }

  /// Whether the node can be asked: it is connected (waits at most `connect_within` for that) and
  /// has few unanswered requests. Reads answers if one has been awaited for more than
  /// `max_silence`; after the answer timeout, closes the connection.
  bool ready(Duration max_silence, Duration connect_within = {}, const std::stop_token& stop = {}) {
    const auto silence = [&] {
      return sent_.empty() ? Duration::zero() : env_.now() - sent_.front().sent_at;
    };
    const auto is_overdue = [&] {
      return silence() > max_silence || sent_.size() >= kMaxUnanswered;
    };
    read_answers(true);
    if (is_overdue()) read_answers(false);
    if (is_overdue()) {
      const Duration waited = std::min(silence(), answer_timeout_);
      if (silence() > answer_timeout_) {
        connection_->close();  // its requests count as unanswered
        read_answers(true);
      }
      failure_ = no_answer_within(waited);
    }
    if (sent_.size() >= kMaxUnanswered) return false;
    const auto connected = connection_->connect_within(connect_within, stop);
    if (!connected) failure_ = connected.error().message;
    if (connected && !*connected && failure_.empty()) {
      failure_ = connection_->display() + ": not connected yet";
    }
    return connected && *connected;
  }

  /// Sends a request to a node that is ready, and waits for this answer only.
  void ask(const NodeRequestPtr& request) {
    // An answer that was not read yet may show that the script is known.
    const Script* const script = script_of(request->kind);
    if (script != nullptr && !known_scripts_.contains(script)) read_answers(false);
    if (request->kind == NodeRequest::Kind::acquire) requested_.emplace(request->token, request);
    // Leaves half of the room to requests.
    for (std::size_t left = pending_.size(); left > 0 && sent_.size() < kMaxUnanswered / 2;
         --left) {
      const PendingRelease pending = std::move(pending_.front());
      pending_.pop_front();
      if (env_.now() < pending.until) send(pending.request);
    }
    if (request->kind == NodeRequest::Kind::release) requested_.erase(request->token);
    send(request);
    connection_->flush();
    awaited_ = request;
  }

  /// Does not send the request; but a release of a lock that the node may hold is sent later.
  void skip(const NodeRequestPtr& request) {
    awaited_ = nullptr;
    if (request->kind == NodeRequest::Kind::acquire)
      observer_.on_vote(number_, Vote::failed, {}, false);
    if (request->kind != NodeRequest::Kind::release || !may_hold(request->token)) return;
    requested_.erase(request->token);
    // Pipelined behind the request that it undoes, so it cannot overtake it.
    const bool can_follow = !sent_.empty() && sent_.size() < kMaxUnansweredWithReleases &&
                            connection_->descriptor() >= 0;
    if (!can_follow) return add_pending(request);
    send(request);
    connection_->flush();
  }

  /// Whether the node may hold the lock with this token.
  bool may_hold(std::string_view token) const { return requested_.contains(token); }

  /// The awaited answer if it is there: whether the node did as asked.
  std::optional<StoreResult<bool>> answer() {
    while (!sent_.empty()) {
      auto reply = connection_->receive_within(Duration::zero());
      if (!reply) return std::nullopt;
      if (auto awaited = settle(*std::move(reply))) return awaited;
    }
    return std::nullopt;
  }

  /// Called if the awaited answer did not come in time.
  void give_up(Duration waited) {
    failure_ = no_answer_within(waited);
    if (awaited_ && awaited_->kind == NodeRequest::Kind::acquire) {
      observer_.on_vote(number_, Vote::failed, waited, false);
    }
    awaited_ = nullptr;
  }

  /// Answers from now on are late.
  void stop_waiting() { awaited_ = nullptr; }

  /// To poll for input while an answer is awaited; -1: the answer is there already.
  int descriptor() const { return connection_->descriptor(); }
  /// Why it failed last: one line that names the node.
  const std::string& failure() const { return failure_; }
  /// Releases that are still to be sent.
  std::size_t pending_releases() const { return pending_.size(); }
  /// Sends them if that takes no wait.
  void send_pending_releases() {
    read_answers(false);
    if (pending_.empty() || !ready(answer_timeout_)) return;
    for (; !pending_.empty() && sent_.size() < kMaxUnansweredWithReleases; pending_.pop_front())
      send(pending_.front().request);
    connection_->flush();
  }

 private:
  // Bounds on unanswered requests; the second leaves room for the releases that follow them.
  // Reached before the answer timeout only if the client decides without waiting for a silent node.
  static constexpr std::size_t kMaxUnanswered = 256;
  static constexpr std::size_t kMaxUnansweredWithReleases = 512;
  static constexpr std::size_t kMaxPendingReleases = 256;

  struct Sent {
    NodeRequestPtr request;
    TimePoint sent_at{};
    bool with_source = false;  ///< its script was sent in full
  };
  struct PendingRelease {
    NodeRequestPtr request;
    TimePoint until{};  ///< the lock will have expired by then
  };

  static const Script* script_of(NodeRequest::Kind kind) {
    if (kind == NodeRequest::Kind::acquire) return nullptr;
    return kind == NodeRequest::Kind::renew ? &scripts::renew_if_token : &scripts::release_if_token;
  }

  void send(const NodeRequestPtr& request) {
    const std::string milliseconds = std::to_string(ceil_milliseconds(request->ttl));
    const Script* const script = script_of(request->kind);
    const bool with_source = script != nullptr && !known_scripts_.contains(script);
    if (script == nullptr) {
      connection_->queue({"SET", request->key, request->token, "NX", "PX", milliseconds});
    } else if (request->kind == NodeRequest::Kind::renew) {
      connection_->queue(*script, with_source, {request->key}, {request->token, milliseconds});
    } else {
      connection_->queue(*script, with_source, {request->key}, {request->token});
    }
    broken_ = false;  // all losses of the last connection are handled by now
    sent_.push_back({.request = request, .sent_at = env_.now(), .with_source = with_source});
  }

  void add_pending(const NodeRequestPtr& request) {
    if (pending_.size() == kMaxPendingReleases) pending_.pop_front();  // the oldest expires first
    pending_.push_back({.request = request, .until = env_.now() + request->ttl});
  }

  /// Reads the received answers. `failed_only`: only if the connection broke, which fails all sent
  /// requests.
  void read_answers(bool failed_only) {
    while (!sent_.empty() && !(failed_only && connection_->descriptor() >= 0)) {
      auto reply = connection_->receive_within(Duration::zero());
      if (!reply) return;
      (void)settle(*std::move(reply));
    }
  }

  /// Handles the answer to the oldest request; returns it if it was awaited.
  std::optional<StoreResult<bool>> settle(StoreResult<Reply> reply) {
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    const Script* const script = script_of(sent.request->kind);
    const bool unknown_script = !reply && reply.error().code == StoreError::Code::unknown_script;
    if (unknown_script && script != nullptr && !sent.with_source) {
      known_scripts_.erase(script);
      send(sent.request);  // now with the source
      connection_->flush();
      return std::nullopt;
    }
    StoreResult<bool> done = script == nullptr
                                 ? connection_->read(kOkOrNil, "SET", std::move(reply))
                                 : connection_->read(kFlag, script->name, std::move(reply));
    if (!done) {
      note_failure(done.error(), sent.request);
    } else if (script != nullptr) {
      known_scripts_.insert(script);
    }
    const bool awaited = awaited_ == sent.request;
    if (sent.request->kind == NodeRequest::Kind::acquire) {
      const Vote vote = !done ? Vote::failed : *done ? Vote::granted : Vote::refused;
      observer_.on_vote(number_, vote, env_.now() - sent.sent_at, !awaited);
    }
    if (!awaited) return std::nullopt;
    awaited_ = nullptr;
    return done;
  }

  void note_failure(const StoreError& error, const NodeRequestPtr& request) {
    if (error.kind == StoreError::Kind::rejected) {
      failure_ = error.message;
      return;
    }
    known_scripts_.clear();  // the next connection may be to another server
    if (request->kind == NodeRequest::Kind::release) add_pending(request);
    // The other requests on a broken connection fail for the same reason.
    if (!std::exchange(broken_, true)) failure_ = error.message;
  }

  std::string no_answer_within(Duration waited) const {
    return fmt::format("{}: no answer within {}", connection_->display(), format_duration(waited));
  }

  const int number_;
  std::unique_ptr<Connection> connection_;
  const Duration answer_timeout_;
  StrategyObserver& observer_;
  Env& env_;
  std::deque<Sent> sent_;  ///< not answered yet, oldest first
  std::deque<PendingRelease> pending_;
  /// Acquire requests that were not released yet, by token.
  std::unordered_map<std::string_view, NodeRequestPtr> requested_;
  NodeRequestPtr awaited_;
  /// Scripts that, by an answer on this connection, the server knows. Others are sent in full, as a
  /// NOSCRIPT answer may come when nobody reads it any more.
  std::set<const Script*> known_scripts_;
  bool broken_ = false;  ///< the connection broke: everything sent on it is one failure
  std::string failure_;
};

}  // namespace lockbench::redis
