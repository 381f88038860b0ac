#include "strategies/redis/client/quorum_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/redis/scripts.h"

namespace lockbench::redis {
namespace {

// A node that does not answer must not collect questions without end. The rest of the room is for
// what takes them back.
constexpr std::size_t kMostAsked = 32;
constexpr std::size_t kMostDue = 64;
constexpr std::size_t kMostOwed = 256;
constexpr Duration kShortestPause = std::chrono::milliseconds(20);
constexpr std::uint32_t kDoublings = 5;

const Script* script_of(Question::Kind kind) {
  switch (kind) {
    case Question::Kind::take:
      return nullptr;
    case Question::Kind::prolong:
      return &scripts::renew_if_token;
    case Question::Kind::free:
      return &scripts::release_if_token;
  }
  return nullptr;
}

bool is_yes(Question::Kind kind, const Reply& reply) {
  return kind == Question::Kind::take ? reply.is_text("OK") : reply.is_integer(1);
}

bool is_unknown_script(const StoreError& error) {
  return error.kind == StoreError::Kind::rejected &&
         error.message.find("NOSCRIPT") != std::string::npos;
}

}  // namespace

QuorumNode::QuorumNode(int number, std::string display, std::unique_ptr<Connection> connection,
                       Duration answer_timeout, QuorumObserver& observer, Env& env)
    : number_(number),
      display_(std::move(display)),
      connection_(std::move(connection)),
      answer_timeout_(answer_timeout),
      observer_(observer),
      env_(env) {}

bool QuorumNode::ready(Duration patience, Duration longest) {
  if (env_.now() < alone_until_) return false;
  take_answers(true);
  if (silent(patience) || env_.now() < alone_until_) return false;
  const auto connected = connection_->connect_within(longest);
  if (!connected) back_off(connected.error().message);
  return connected && *connected;
}

bool QuorumNode::revive(Duration longest) {
  alone_until_ = TimePoint::min();
  return ready(answer_timeout_, longest);
}

bool QuorumNode::silent(Duration patience) {
  const auto waits_too_long = [&](Duration bound) {
    return !due_.empty() && env_.now() - due_.front().sent_at > bound;
  };
  if (!waits_too_long(patience) && due_.size() < kMostAsked) return false;
  take_answers(false);  // unless nobody has looked
  if (waits_too_long(answer_timeout_)) {
    failure_ = fmt::format("{}: no answer within {}", display_, format_duration(answer_timeout_));
    connection_->close();  // what is due counts as unanswered
    take_answers(true);
    return true;
  }
  return waits_too_long(patience) || due_.size() >= kMostAsked;
}

void QuorumNode::look_for_script(const Question& question) {
  const bool needed = script_of(question.kind) != nullptr;
  if (needed && !knows_script_of(question)) take_answers(false);
}

void QuorumNode::ask(const QuestionPtr& question) {
  look_for_script(*question);
  if (question->kind == Question::Kind::take) held_.emplace(question->token, question);
  for (std::size_t left = owed_.size(); left > 0 && due_.size() < kMostAsked; --left) {
    const Owed owed = std::move(owed_.front());
    owed_.pop_front();
    if (env_.now() < owed.until) send(owed.question);
  }
  send(question->kind == Question::Kind::free ? with_ttl(question) : question);
  connection_->flush();
  awaited_ = due_.back().question;
}

void QuorumNode::pass_over(const QuestionPtr& question) {
  awaited_ = nullptr;
  if (question->kind == Question::Kind::take) observer_.on_vote(number_, Vote::failed, {}, false);
  if (question->kind != Question::Kind::free || !may_hold(question->token)) return;
  const QuestionPtr release = with_ttl(question);
  // Behind the very request that it undoes it cannot be overtaken by it.
  const bool can_follow = !due_.empty() && due_.size() < kMostDue && connection_->descriptor() >= 0;
  if (!can_follow) return owe(release);
  send(release);
  connection_->flush();
}

QuestionPtr QuorumNode::with_ttl(const QuestionPtr& question) {
  const auto held = held_.find(question->token);
  if (held == held_.end()) return question;
  auto release = std::make_shared<Question>(*question);
  release->ttl = held->second->ttl;
  held_.erase(held);
  return release;
}

bool& QuorumNode::knows_script_of(const Question& question) {
  return known_scripts_.at(static_cast<std::size_t>(question.kind));
}

void QuorumNode::send(const QuestionPtr& question) {
  const std::string milliseconds = std::to_string(ceil_milliseconds(question->ttl));
  const Script* const script = script_of(question->kind);
  const bool in_full = script != nullptr && !knows_script_of(*question);
  if (script != nullptr) {
    const std::string_view words[] = {in_full ? "EVAL" : "EVALSHA",
                                      in_full ? script->source : script->sha1,
                                      "1",
                                      question->key,
                                      question->token,
                                      milliseconds};
    const bool has_ttl = question->kind == Question::Kind::prolong;
    connection_->queue(Command(words, has_ttl ? 6 : 5), script->name, {});
  } else {
    connection_->queue({"SET", question->key, question->token, "NX", "PX", milliseconds});
  }
  broken_ = false;  // what was lost with the last connection is dealt with
  due_.push_back({.question = question, .sent_at = env_.now(), .in_full = in_full});
}

void QuorumNode::owe(const QuestionPtr& question) {
  if (owed_.size() == kMostOwed) owed_.pop_front();  // the oldest has the least time left
  // Where nobody knows what it was granted for, it is the store that forgets it.
  const Duration lasts = question->ttl > Duration::zero() ? question->ttl : std::chrono::hours(1);
  owed_.push_back({.question = question, .until = env_.now() + lasts});
}

std::optional<QuorumNode::Answer> QuorumNode::answer() {
  while (!due_.empty()) {
    const auto reply = connection_->receive_within(Duration::zero());
    if (!reply) return std::nullopt;
    if (const auto awaited = settle(*reply)) return awaited;
  }
  return std::nullopt;
}

void QuorumNode::take_answers(bool known_ones_only) {
  while (!due_.empty() && !(known_ones_only && connection_->descriptor() >= 0)) {
    const auto reply = connection_->receive_within(Duration::zero());
    if (!reply) return;
    (void)settle(*reply);
  }
}

std::optional<QuorumNode::Answer> QuorumNode::settle(const StoreResult<Reply>& reply) {
  const Due due = std::move(due_.front());
  due_.pop_front();
  const bool awaited = awaited_ == due.question;
  if (!reply && !due.in_full && is_unknown_script(reply.error())) {
    knows_script_of(*due.question) = false;
    send(due.question);
    connection_->flush();
    return std::nullopt;
  }
  Answer answer;
  if (reply) {
    failures_ = 0;
    knows_script_of(*due.question) = true;
    answer.vote = is_yes(due.question->kind, *reply) ? Vote::granted : Vote::refused;
  } else {
    answer.perhaps = reply.error().kind == StoreError::Kind::unanswered;
    const bool broken = reply.error().kind != StoreError::Kind::rejected;
    const bool new_failure = !broken || !std::exchange(broken_, true);
    if (broken) {
      known_scripts_ = {};
      lose(due);
    }
    if (new_failure) back_off(reply.error().message);
  }
  tell(due, answer.vote);
  if (!awaited) return std::nullopt;
  awaited_ = nullptr;
  return answer;
}

void QuorumNode::tell(const Due& due, Vote vote) {
  if (due.question->kind != Question::Kind::take) return;
  observer_.on_vote(number_, vote, env_.now() - due.sent_at, awaited_ != due.question);
}

void QuorumNode::lose(const Due& due) {
  if (due.question->kind == Question::Kind::free) owe(due.question);
}

void QuorumNode::miss(Duration waited) {
  failure_ = fmt::format("{}: no answer within {}", display_, format_duration(waited));
  if (awaited_ && awaited_->kind == Question::Kind::take) {
    observer_.on_vote(number_, Vote::failed, waited, false);
  }
  awaited_ = nullptr;
}

void QuorumNode::back_off(const std::string& why) {
  failure_ = why;
  // A connection that was lost may be had again at once.
  const Duration pause = failures_ == 0
                             ? Duration::zero()
                             : kShortestPause * (1 << std::min(failures_ - 1, kDoublings));
  ++failures_;
  alone_until_ = env_.now() + pause;
}

void QuorumNode::tidy_up() {
  take_answers(false);
  if (owed_.empty() || !ready(answer_timeout_)) return;
  for (; !owed_.empty() && due_.size() < kMostDue; owed_.pop_front()) send(owed_.front().question);
  connection_->flush();
}

}  // namespace lockbench::redis
