#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
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

/// Reads TTL and value of many keys in one round trip, and the numbers of their waiters. For one
/// thread. Throws Failure when the connection breaks.
class RedisLook : private Watching {
 public:
  /// Commands for one key, if it is of the expected type.
  static constexpr std::uint64_t kQuestions = 2;

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
      if (!budget_.spend(kQuestions, env_.now())) break;
      auto turn = book.next(env_.now());
      if (!turn) {
        budget_.give_back(kQuestions);
        break;
      }
      questions.push_back(question_for(*std::move(turn)));
    }
    return exchange(std::move(questions));
  }
  /// Looks at one key without asking the budget.
  Answer one(const std::string& key) {
    return std::move(exchange({question_for({.key = key})}).front());
  }

  /// Counts those who wait for held locks, with at most a quarter of the budget, so that changes do
  /// not wait for it. Returns sightings of waiters only.
  std::vector<Sighting> waiters(RedisBook& book) {
    std::vector<Poll> polls = polls_of(book);
    if (polls.empty()) return {};
    const TimePoint asked_at = env_.now();
    const bool counts = may_count_subscribers_ && spend_on_polls(asked_at);
    std::vector<std::string> words{"PUBSUB", "NUMSUB"};
    for (Poll& poll : polls) {
      if (!poll.sorted) words.push_back(redisson_channel(poll.key));
      poll.asked = spend_on_polls(asked_at);
    }
    // One command for all channels.
    const std::vector<std::string_view> views(words.begin(), words.end());
    if (counts) connection_.queue(redis::Command(views));
    for (const Poll& poll : polls) {
      if (!poll.asked) continue;
      connection_.queue({poll.sorted ? "ZCARD" : "LLEN",
                         poll.sorted ? poll.key + ":queue" : redisson_queue(poll.key)});
    }
    connection_.flush(stop_);
    const Reply subscribers = counts ? receive() : Reply();
    if (subscribers.type == Reply::Type::error) may_count_subscribers_ = false;
    std::vector<Sighting> seen;
    std::size_t channel = 0;
    for (Poll& poll : polls) {
      const bool was_crowded = crowded_.contains(poll.key);
      auto waiting = poll.sorted ? std::nullopt : subscribers_in(subscribers, channel++);
      if (poll.asked) {
        if (const auto queued = count_in(receive())) {
          waiting = std::max(waiting.value_or(0), *queued);
        }
      } else if (was_crowded) {
        waiting.reset();  // they may all be in the queue
      }
      if (!waiting) continue;
      if (*waiting == 0) crowded_.erase(poll.key);
      if (*waiting > 0 && crowded_.size() < kMostPolled) crowded_[poll.key] = poll.sorted;
      Sighting& sighting = seen.emplace_back(free_lock(std::move(poll.key), asked_at));
      sighting.waiters = waiting;
      sighting.only_waiters = true;
    }
    const TimePoint now = env_.now();
    budget_.answered(now - asked_at, now);
    return seen;
  }

  /// Notes that a key exists that may be a companion.
  void know(const Companion& companion) {
    if (companion.queue && queued_.size() < kMostCompanions) queued_.insert(companion.lock);
  }

 private:
  using Reply = redis::Reply;
  static constexpr std::size_t kMostCompanions = 10'000, kMostAtOnce = 128, kMostPolled = 256;
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

  /// A lock whose waiters are counted.
  struct Poll {
    std::string key;
    bool sorted = false;  ///< its queue is a sorted set beside the key, else Redisson's list
    bool asked = false;   ///< the budget allows to ask for the queue
  };
  /// First the locks that somebody waited for, also if they are free now.
  std::vector<Poll> polls_of(RedisBook& book) {
    std::vector<Poll> polls;
    for (const auto& [key, sorted] : crowded_) polls.push_back({.key = key, .sorted = sorted});
    const auto add = [&](std::string key, bool sorted) {
      if (crowded_.contains(key)) return;
      polls.push_back({.key = std::move(key), .sorted = sorted});
    };
    for (std::string& key : book.held_hashes(kMostPolled)) add(std::move(key), false);
    auto place = queued_.upper_bound(last_queue_);
    for (std::size_t i = 0; i < std::min(kMostPolled, queued_.size()); ++i, ++place) {
      if (place == queued_.end()) place = queued_.begin();
      if (book.is_held(*place)) add(*place, true);
      last_queue_ = *place;
    }
    return polls;
  }
  /// Spends one command.
  bool spend_on_polls(TimePoint now) {
    if (!polls_.spend(1, now)) return false;
    if (budget_.spend(1, now)) return true;
    polls_.give_back(1);
    return false;
  }
  /// Reads the reply to NUMSUB: channels and their numbers in turn.
  static std::optional<std::uint64_t> subscribers_in(const Reply& reply, std::size_t channel) {
    const std::size_t place = 2 * channel + 1;
    const bool has = reply.type == Reply::Type::array && place < reply.elements.size();
    return has ? count_in(reply.elements[place]) : std::nullopt;
  }

  struct Question {
    RedisBook::Turn turn;
    KeyKind asked_as = KeyKind::text;
    bool may_be_empty = false;  ///< ask with GET, which tells an empty value from none
  };

  Question question_for(RedisBook::Turn turn) const {
    Question question{.turn = std::move(turn)};
    question.asked_as = question.turn.kind == KeyKind::unknown ? usual_ : question.turn.kind;
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
          budget_.owe(kQuestions);
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
    answers.time_left = receive();
    answers.value = receive();
    const auto says = [&](std::string_view error) {
      return answers.value.type == Reply::Type::error &&
             answers.value.text.find(error) != std::string::npos;
    };
    if (says("WRONGTYPE")) return std::nullopt;
    // A long script, a restart, a lost master or withdrawn rights: nothing is known of the key.
    // Keys beyond the rights are nobody's locks.
    const bool fails =
        answers.value.type == Reply::Type::error || answers.time_left.type == Reply::Type::error;
    if (fails && !says("access one of the keys")) {
      throw Failure(says("") ? answers.value.text : answers.time_left.text);
    }
    if (question.asked_as == KeyKind::hash) answers.value = all_fields(std::move(answers.value));
    // GETRANGE returns "" both for an empty value and for a missing key.
    constexpr std::int64_t kNoKey = -2;
    if (answers.value.is_text("") && !question.may_be_empty) {
      if (!answers.time_left.is_integer(kNoKey)) return std::nullopt;
      answers.value = Reply();
    }
    return Answer{.key = question.turn.key,
                  .kind = question.asked_as,
                  .state = read_redis_lock(question.turn.key, question.asked_as, answers),
                  .asked_at = asked_at,
                  .answered_at = env_.now()};
  }

  redis::Connection& connection_;
  Budget polls_{request_.budget / 4};
  KeyKind usual_ = KeyKind::text;  ///< expected of new keys
  bool may_count_subscribers_ = true;
  std::set<std::string> queued_;         ///< locks that have a companion queue
  std::map<std::string, bool> crowded_;  ///< locks that somebody waits for; whether in a sorted set
  std::string last_queue_;
};

}  // namespace lockbench::watch
