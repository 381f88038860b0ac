#include "strategies/redis/client/quorum_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/scripts.h"

namespace lockbench::redis {
namespace {

// Bounds on requests without an answer; the second one leaves room for the releases that follow
// them. Only a client that decides without waiting for a silent node meets them before the answer
// timeout.
constexpr std::size_t kMaxUnanswered = 256;
constexpr std::size_t kMaxUnansweredWithReleases = 512;
constexpr std::size_t kMaxPendingReleases = 256;

const Script* script_of(NodeRequest::Kind kind) {
  switch (kind) {
    case NodeRequest::Kind::acquire:
      return nullptr;
    case NodeRequest::Kind::renew:
      return &scripts::renew_if_token;
    case NodeRequest::Kind::release:
      return &scripts::release_if_token;
  }
  return nullptr;
}

}  // namespace

QuorumNode::QuorumNode(int number, std::unique_ptr<Connection> connection, Duration answer_timeout,
                       StrategyObserver& observer, Env& env)
    : number_(number),
      connection_(std::move(connection)),
      answer_timeout_(answer_timeout),
      observer_(observer),
      env_(env) {}

bool QuorumNode::ready(Duration max_silence, Duration connect_within, const std::stop_token& stop) {
  read_answers(true);
  read_overdue(max_silence);
  if (sent_.size() >= kMaxUnanswered) return false;
  const auto connected = connection_->connect_within(connect_within, stop);
  if (!connected) failure_ = connected.error().message;
  if (connected && !*connected && failure_.empty())
    failure_ = connection_->display() + ": not connected yet";
  return connected && *connected;
}

void QuorumNode::read_overdue(Duration max_silence) {
  const auto waits_too_long = [&](Duration bound) {
    return !sent_.empty() && env_.now() - sent_.front().sent_at > bound;
  };
  if (!waits_too_long(max_silence) && sent_.size() < kMaxUnanswered) return;
  read_answers(false);
  if (waits_too_long(max_silence) || sent_.size() >= kMaxUnanswered) {
    failure_ =
        fmt::format("{}: no answer within {}", connection_->display(),
                    format_duration(std::min(env_.now() - sent_.front().sent_at, answer_timeout_)));
  }
  if (waits_too_long(answer_timeout_)) {
    connection_->close();  // what was sent counts as unanswered
    read_answers(true);
  }
}

void QuorumNode::ask(const NodeRequestPtr& request) {
  // An answer that was not read yet may show that the script is known.
  if (script_of(request->kind) != nullptr && !knows_script_of(*request)) read_answers(false);
  if (request->kind == NodeRequest::Kind::acquire) requested_.emplace(request->token, request);
  // Half of the room is left for requests.
  for (std::size_t left = pending_.size(); left > 0 && sent_.size() < kMaxUnanswered / 2; --left) {
    const PendingRelease pending = std::move(pending_.front());
    pending_.pop_front();
    if (env_.now() < pending.until) send(pending.request);
  }
  if (request->kind == NodeRequest::Kind::release) requested_.erase(request->token);
  send(request);
  connection_->flush();
  awaited_ = request;
}

void QuorumNode::skip(const NodeRequestPtr& request) {
  awaited_ = nullptr;
  if (request->kind == NodeRequest::Kind::acquire)
    observer_.on_vote(number_, Vote::failed, {}, false);
  if (request->kind != NodeRequest::Kind::release || !may_hold(request->token)) return;
  requested_.erase(request->token);
  // Pipelined behind the request that it undoes, so it cannot arrive before it.
  const bool can_follow =
      !sent_.empty() && sent_.size() < kMaxUnansweredWithReleases && connection_->descriptor() >= 0;
  if (!can_follow) return add_pending(request);
  send(request);
  connection_->flush();
}

bool& QuorumNode::knows_script_of(const NodeRequest& request) {
  return known_scripts_.at(static_cast<std::size_t>(request.kind));
}

void QuorumNode::send(const NodeRequestPtr& request) {
  const std::string milliseconds = std::to_string(ceil_milliseconds(request->ttl));
  const Script* const script = script_of(request->kind);
  const bool with_source = script != nullptr && !knows_script_of(*request);
  if (script == nullptr) {
    connection_->queue({"SET", request->key, request->token, "NX", "PX", milliseconds});
  } else if (request->kind == NodeRequest::Kind::renew) {
    connection_->queue(*script, with_source, {request->key}, {request->token, milliseconds});
  } else {
    connection_->queue(*script, with_source, {request->key}, {request->token});
  }
  broken_ = false;  // by now all that was lost with the last connection has been handled
  sent_.push_back({.request = request, .sent_at = env_.now(), .with_source = with_source});
}

void QuorumNode::add_pending(const NodeRequestPtr& request) {
  if (pending_.size() == kMaxPendingReleases) pending_.pop_front();  // the oldest expires first
  pending_.push_back({.request = request, .until = env_.now() + request->ttl});
}

std::optional<QuorumNode::Answer> QuorumNode::answer() {
  while (!sent_.empty()) {
    auto reply = connection_->receive_within(Duration::zero());
    if (!reply) return std::nullopt;
    if (const auto awaited = settle(*std::move(reply))) return awaited;
  }
  return std::nullopt;
}

void QuorumNode::read_answers(bool failed_only) {
  while (!sent_.empty() && !(failed_only && connection_->descriptor() >= 0)) {
    auto reply = connection_->receive_within(Duration::zero());
    if (!reply) return;
    (void)settle(*std::move(reply));
  }
}

std::optional<QuorumNode::Answer> QuorumNode::settle(StoreResult<Reply> reply) {
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  const NodeRequest& request = *sent.request;
  if (!reply && reply.error().code == StoreError::Code::unknown_script && !sent.with_source) {
    knows_script_of(request) = false;
    send(sent.request);
    connection_->flush();
    return std::nullopt;
  }
  const Script* const script = script_of(request.kind);
  const StoreResult<bool> yes = script == nullptr
                                    ? connection_->read(kOkOrNil, "SET", std::move(reply))
                                    : connection_->read(kFlag, script->name, std::move(reply));
  Answer answer;
  if (yes) {
    answer.vote = *yes ? Vote::granted : Vote::refused;
    knows_script_of(request) = true;
  } else {
    answer.may_have_taken_effect = yes.error().kind == StoreError::Kind::unanswered;
    note_failure(yes.error(), sent.request);
  }
  const bool awaited = awaited_ == sent.request;
  if (request.kind == NodeRequest::Kind::acquire) {
    observer_.on_vote(number_, answer.vote, env_.now() - sent.sent_at, !awaited);
  }
  if (!awaited) return std::nullopt;
  awaited_ = nullptr;
  return answer;
}

void QuorumNode::note_failure(const StoreError& error, const NodeRequestPtr& request) {
  if (error.kind == StoreError::Kind::rejected) {
    failure_ = error.message;
    return;
  }
  known_scripts_ = {};  // the next connection may be to another server
  if (request->kind == NodeRequest::Kind::release) add_pending(request);
  // The rest of what was sent on a connection that broke fails for the same reason.
  if (!std::exchange(broken_, true)) failure_ = error.message;
}

void QuorumNode::give_up(Duration waited) {
  failure_ =
      fmt::format("{}: no answer within {}", connection_->display(), format_duration(waited));
  if (awaited_ && awaited_->kind == NodeRequest::Kind::acquire) {
    observer_.on_vote(number_, Vote::failed, waited, false);
  }
  awaited_ = nullptr;
}

void QuorumNode::send_pending_releases() {
  read_answers(false);
  if (pending_.empty() || !ready(answer_timeout_)) return;
  for (; !pending_.empty() && sent_.size() < kMaxUnansweredWithReleases; pending_.pop_front())
    send(pending_.front().request);
  connection_->flush();
}

}  // namespace lockbench::redis
