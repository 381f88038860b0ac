#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "watch/sources/budget.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {

/// Looks at keys: asks for time to live and value, and who waits, in one round trip for many keys.
/// For one thread.
class RedisLook {
 public:
  /// That one key can take.
  static constexpr std::uint64_t kMostQuestions = 4;

  RedisLook(redis::Connection& connection, Env& env, Budget& budget)
      : connection_(connection), env_(env), budget_(budget) {}

  struct Answer {
    std::string key;
    KeyKind kind = KeyKind::unknown;
    std::optional<Sighting> state;  ///< nothing: it is no lock
    TimePoint asked_at{}, answered_at{};
  };
  /// Of the keys that wait, as many as the budget allows; none if none may be asked about now. The
  /// error is that of the connection.
  StoreResult<std::vector<Answer>> batch(RedisBook& book, const std::stop_token& stop);
  /// One key, whatever the budget.
  StoreResult<Answer> one(const std::string& key, const std::stop_token& stop);

  /// A key that stands beside a lock exists.
  void know(const Companion& companion);
  /// Locks with such a queue.
  const std::set<std::string>& queued_locks() const { return queued_; }

 private:
  struct Question {
    RedisBook::Turn turn;
    KeyKind asked_as = KeyKind::text;
    bool may_be_empty = false;  ///< its value: asked for by GET
    bool redisson = false, queue = false, fence = false;
    std::uint64_t commands() const {
      return 2U + (redisson ? 2U : 0U) + (queue || fence ? 1U : 0U);
    }
  };

  Question question_for(RedisBook::Turn turn) const;
  void ask(const Question& question);
  StoreResult<std::vector<Answer>> exchange(std::vector<Question> questions,
                                            const std::stop_token& stop);
  /// Nothing: it must be asked again, as it is of another type or has no value or an empty one.
  StoreResult<std::optional<Answer>> receive(const Question& question, TimePoint asked_at,
                                             const std::stop_token& stop);
  /// An error reply becomes one.
  StoreResult<redis::Reply> receive(const std::stop_token& stop);

  redis::Connection& connection_;
  Env& env_;
  Budget& budget_;
  KeyKind usual_ = KeyKind::text;  ///< of keys that were not seen before
  bool may_count_subscribers_ = true;
  std::set<std::string> queued_, fenced_;
};

}  // namespace lockbench::watch
