#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "strategies/quorum_observer.h"
#include "strategies/redis/client/connection.h"

namespace lockbench::redis {

/// What every node of a quorum is asked.
struct Question {
  enum class Kind { take, prolong, free };
  Kind kind = Kind::take;
  std::string key, token;
  Duration ttl{};  ///< of `take` and `prolong`
};
using QuestionPtr = std::shared_ptr<const Question>;

/// One of the independent servers that a lock lives on, as one client uses it. Questions go out
/// behind each other; answers that come late are read when there is time. A node that fails or
/// falls silent is left alone for a while, and costs nothing meanwhile. What it may still hold of
/// ours is freed when it can be reached again. For one thread.
class QuorumNode {
 public:
  struct Answer {
    Vote vote = Vote::failed;
    bool perhaps = false;  ///< failed, but it may have taken effect
  };

  /// `number` is its place among the nodes; `answer_timeout` ends the wait for an answer for good.
  QuorumNode(int number, std::string display, std::unique_ptr<Connection> connection,
             Duration answer_timeout, QuorumObserver& observer, Env& env);

  StoreResult<void> connect(const std::stop_token& stop) { return connection_->connect(stop); }

  /// Whether it is worth asking: connected (waiting for that no longer than `longest`), not left
  /// alone, and not silent for longer than `patience`.
  bool ready(Duration patience, Duration longest = {});
  /// The same for one without which there is no majority: however it failed before.
  bool revive(Duration longest);

  /// Sends a question to a node that is ready. Its answer is awaited, and no other.
  void ask(const QuestionPtr& question);
  /// The question is not put to it. If that leaves something of ours there, it is freed later.
  void pass_over(const QuestionPtr& question);
  /// Whether it may hold this token.
  bool may_hold(std::string_view token) const { return held_.contains(token); }

  /// The awaited answer, if it has come.
  std::optional<Answer> answer();
  /// It did not come in time.
  void miss(Duration waited);
  /// What comes from now on is late.
  void stop_waiting() { awaited_ = nullptr; }

  /// To be polled for input while an answer is awaited; -1: it is there.
  int descriptor() const { return connection_->descriptor(); }
  /// Why it failed last, in one line that names it.
  const std::string& failure() const { return failure_; }
  /// How many releases are still to arrive.
  std::size_t owed() const { return owed_.size(); }
  /// Frees what can be freed without waiting.
  void tidy_up();

 private:
  struct Due {
    QuestionPtr question;
    TimePoint sent_at{};
    bool in_full = false;  ///< with its script's source
  };
  struct Owed {
    QuestionPtr question;
    TimePoint until{};  ///< it will have expired by then
  };

  void send(const QuestionPtr& question);
  void owe(const QuestionPtr& question);
  bool& knows_script_of(const Question& question);
  /// It may be known by an answer that nobody has read.
  void look_for_script(const Question& question);
  /// A `free` that knows how long the token may last.
  QuestionPtr with_ttl(const QuestionPtr& question);
  void take_answers(bool known_ones_only);
  /// The oldest question's answer.
  std::optional<Answer> settle(const StoreResult<Reply>& reply);
  void tell(const Due& due, Vote vote);
  void lose(const Due& due);
  void back_off(const std::string& why);
  bool silent(Duration patience);

  const int number_;
  const std::string display_;
  std::unique_ptr<Connection> connection_;
  const Duration answer_timeout_;
  QuorumObserver& observer_;
  Env& env_;
  std::deque<Due> due_;
  std::deque<Owed> owed_;
  /// By their tokens: what was asked for, and not given back yet.
  std::unordered_map<std::string_view, QuestionPtr> held_;
  QuestionPtr awaited_;
  TimePoint alone_until_ = TimePoint::min();
  std::uint32_t failures_ = 0;  ///< in a row
  /// Scripts, by the kinds of questions, that this connection has had an answer from. Until then
  /// they are sent in full: an answer that asks for the source may come when nobody reads it any
  /// more.
  std::array<bool, 3> known_scripts_{};
  bool broken_ = false;  ///< the connection, with all that is due: one failure
  std::string failure_;
};

}  // namespace lockbench::redis
