#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_lock.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {

/// Reads the TTL, value and waiters of many keys in one round trip. For one thread. Throws Failure
/// when the connection breaks.
class RedisLook : private Watching {
 public:
  /// Commands for one key, at most.
  static constexpr std::uint64_t kMostQuestions = 4;

  RedisLook(redis::Connection& connection, const Watching& watching)
      : Watching(watching), connection_(connection) {}

  struct Answer {
    std::string key;
    KeyKind kind = KeyKind::unknown;
    std::optional<Sighting> state;  ///< nothing: the key is no lock
    TimePoint asked_at{}, answered_at{};
  };
  /// Looks at as many waiting keys as the budget allows now, if any.
  std::vector<Answer> batch(RedisBook& book) {
    std::vector<Question> questions;
    while (questions.size() < kMostAtOnce) {
      auto turn = book.next();
      if (!turn) break;
      Question question = question_for(*turn);
      if (!budget_.spend(question.commands(), env_.now())) {
        book.put_back(*turn);
        break;
      }
      questions.push_back(std::move(question));
    }
    return exchange(std::move(questions));
  }
  /// Looks at one key without asking the budget.
  Answer one(const std::string& key) {
    return std::move(exchange({question_for({.key = key})}).front());
  }

  /// Notes that a companion key exists.
  void know(const Companion& companion) {
    if (companion.queue && queued_.size() < kMostCompanions) queued_.insert(companion.lock);
  }
  /// Locks that have a companion queue.
  const std::set<std::string>& queued_locks() const { return queued_; }

 private:
  using Reply = redis::Reply;
  static constexpr std::size_t kMostCompanions = 10'000, kMostAtOnce = 128;
  /// Elements of a hash that is read as a whole; more than a lock has. Redis 7.0 counts fields and
  /// values.
  static constexpr std::string_view kMostOfHash = "2100";

  /// Turns the reply to HSCAN into one to HGETALL; an empty reply if there are more fields.
  static Reply all_fields(Reply scanned) {
    if (scanned.type != Reply::Type::array) return scanned;
    const bool complete = scanned.elements.size() == 2 && scanned.elements[0].is_text("0");
    return complete ? std::move(scanned.elements[1]) : Reply();
  }

  static std::optional<std::uint64_t> count_in(const Reply& reply) {
    if (reply.type != Reply::Type::integer || reply.integer < 0) return std::nullopt;
    return static_cast<std::uint64_t>(reply.integer);
  }

  /// Reads the reply to NUMSUB: channel and number.
  static std::optional<std::uint64_t> subscribers_in(const Reply& reply) {
    if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
    return count_in(reply.elements[1]);
  }

  struct Question {
    RedisBook::Turn turn;
    KeyKind asked_as = KeyKind::text;
    bool may_be_empty = false;  ///< ask with GET, which tells an empty value from none
    bool redisson = false, queue = false;
    std::uint64_t commands() const { return 2U + (redisson ? 2U : 0U) + (queue ? 1U : 0U); }
  };

  Question question_for(RedisBook::Turn turn) const {
    Question question{.turn = std::move(turn)};
    question.asked_as = question.turn.kind == KeyKind::unknown ? usual_ : question.turn.kind;
    question.redisson = question.asked_as == KeyKind::hash && may_count_subscribers_;
    question.queue = question.asked_as == KeyKind::text && queued_.contains(question.turn.key);
    return question;
  }
  void ask(const Question& question) {
    const std::string& key = question.turn.key;
    connection_.queue({"PTTL", key});
    // Limit the size: a value may have 512 MB.
    if (question.asked_as == KeyKind::hash) {
      connection_.queue({"HSCAN", key, "0", "COUNT", kMostOfHash});
    } else if (question.may_be_empty) {
      connection_.queue({"GET", key});
    } else {
      connection_.queue({"GETRANGE", key, "0", "255"});
    }
    if (question.redisson) {
      connection_.queue({"PUBSUB", "NUMSUB", redisson_channel(key)});
      connection_.queue({"LLEN", redisson_queue(key)});
    }
    if (question.queue) connection_.queue({"ZCARD", key + ":queue"});
  }
  std::vector<Answer> exchange(std::vector<Question> questions) {
    std::vector<Answer> answers;
    // The second round is for keys of another type than expected, the third for keys that changed
    // type meanwhile.
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds && !questions.empty(); ++round) {
      for (const Question& question : questions) ask(question);
      const TimePoint asked_at = env_.now();
      connection_.flush(stop_);
      std::vector<Question> again;
      for (Question& question : questions) {
        if (auto answer = receive(question, asked_at)) {
          answers.push_back(*std::move(answer));
        } else {
          again.push_back(std::move(question));
        }
      }
      const TimePoint now = env_.now();
      budget_.answered(now - asked_at, now);
      for (const Question& question : again) connection_.queue({"TYPE", question.turn.key});
      for (Question& question : again) {
        const KeyKind kind = kind_of_type(receive().text);
        budget_.owe(1);
        if (kind == KeyKind::text || kind == KeyKind::hash) {
          const bool same = question.asked_as == kind;
          question.turn.kind = usual_ = kind;
          question = question_for(std::move(question.turn));
          question.may_be_empty = same;
          budget_.owe(question.commands());
          continue;
        }
        // A key that was deleted between two commands is free.
        const bool gone = kind == KeyKind::unknown;
        answers.push_back(
            {.key = question.turn.key,
             .kind = kind,
             .state = gone ? read_redis_lock(question.turn.key, kind, {}) : std::nullopt,
             .asked_at = asked_at,
             .answered_at = now});
        question.turn.key.clear();
      }
      std::erase_if(again, [](const Question& question) { return question.turn.key.empty(); });
      questions = std::move(again);
    }
    // A key that has another type each time is no lock.
    for (Question& question : questions) {
      answers.push_back({.key = std::move(question.turn.key),
                         .kind = KeyKind::other,
                         .state = std::nullopt,
                         .asked_at = env_.now(),
                         .answered_at = env_.now()});
    }
    return answers;
  }
  /// Returns an error reply as a reply; other errors throw.
  Reply receive() {
    auto reply = connection_.receive(stop_);
    if (reply || reply.error().kind != StoreError::Kind::rejected) {
      return need(std::move(reply));
    }
    Reply refused;
    refused.type = Reply::Type::error;
    refused.text = reply.error().message;
    return refused;
  }
  /// Nothing if the key must be asked for again: wrong type or empty value.
  std::optional<Answer> receive(const Question& question, TimePoint asked_at) {
    RedisAnswers answers;
    Reply subscribers, queue;
    std::vector<Reply*> expected{&answers.time_left, &answers.value};
    if (question.redisson) expected.insert(expected.end(), {&subscribers, &queue});
    if (question.queue) expected.push_back(&queue);
    for (Reply* const into : expected) *into = receive();
    if (subscribers.type == Reply::Type::error || queue.type == Reply::Type::error) {
      may_count_subscribers_ = may_count_subscribers_ && !question.redisson;
    }
    const auto says = [&](std::string_view error) {
      return answers.value.type == Reply::Type::error &&
             answers.value.text.find(error) != std::string::npos;
    };
    // A long script, a restart or a lost master: the key's value is unknown.
    if (says("BUSY ") || says("LOADING ") || says("MASTERDOWN ")) {
      throw Failure(answers.value.text);
    }
    if (says("WRONGTYPE")) return std::nullopt;
    if (question.asked_as == KeyKind::hash) answers.value = all_fields(std::move(answers.value));
    // GETRANGE returns "" both for an empty value and for a missing key.
    constexpr std::int64_t kNoKey = -2;
    if (answers.value.is_text("") && !question.may_be_empty) {
      if (!answers.time_left.is_integer(kNoKey)) return std::nullopt;
      answers.value = Reply();
    }
    Answer answer{.key = question.turn.key,
                  .kind = question.asked_as,
                  .state = read_redis_lock(question.turn.key, question.asked_as, answers),
                  .asked_at = asked_at,
                  .answered_at = env_.now()};
    if (!answer.state) return answer;
    if (question.redisson) {
      const auto queued = count_in(queue), subscribed = subscribers_in(subscribers);
      if (queued || subscribed) {
        answer.state->waiters = std::max(queued.value_or(0), subscribed.value_or(0));
      }
    }
    if (question.queue) answer.state->waiters = count_in(queue);
    return answer;
  }

  redis::Connection& connection_;
  KeyKind usual_ = KeyKind::text;  ///< expected of new keys
  bool may_count_subscribers_ = true;
  std::set<std::string> queued_;
};

}  // namespace lockbench::watch
