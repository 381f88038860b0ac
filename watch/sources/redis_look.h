#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/protocol.h"
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

/// Goes through the keys of a server that match one of the patterns, again and again.
class KeyScan {
 public:
  /// Without patterns: through all keys.
  KeyScan(redis::Connection& connection, std::vector<std::string> patterns);

  /// One command. The keys may come twice.
  StoreResult<std::vector<std::string>> step(const std::stop_token& stop);
  /// Whether the next step begins again.
  bool at_start() const { return pattern_ == 0 && cursor_ == "0"; }

 private:
  redis::Connection& connection_;
  std::vector<std::string> globs_;
  std::size_t pattern_ = 0;
  std::string cursor_ = "0";
};

/// Which keys look like locks, where the user named none.
class KeyProposals {
 public:
  /// Whether a look at the key can tell something new.
  bool is_new(const std::string& key);
  /// The pattern of its name; nothing: it does not look like a lock.
  std::optional<std::string> judge(const std::string& key, const RedisLook::Answer& looked);

 private:
  std::set<std::string> patterns_;  ///< proposed
  std::set<std::string> others_;    ///< looked at, and no locks
};

/// A connection on which the server speaks of itself, after commands such as SUBSCRIBE. For one
/// thread. After a failure it is closed, until connect() is called again. Reports its
/// commands to its Env.
class RedisFeed {
 public:
  RedisFeed(redis::Endpoint endpoint, Duration command_timeout, Env& env);

  /// Does nothing if there is a connection.
  StoreResult<void> connect(const std::stop_token& stop);
  /// One command and the first thing that the server says then, which is the answer as long as it
  /// has nothing to say of itself. An error reply is of kind `rejected`.
  StoreResult<redis::Reply> call(redis::Command command, const std::stop_token& stop);
  StoreResult<redis::Reply> call(std::initializer_list<std::string_view> command,
                                 const std::stop_token& stop) {
    return call(redis::Command(command.begin(), command.size()), stop);
  }
  /// What the server says next, an error reply included; nothing if it is silent for `longest`.
  /// A stop ends the wait.
  StoreResult<std::optional<redis::Reply>> next(Duration longest, const std::stop_token& stop);
  void close() noexcept;

 private:
  tl::unexpected<StoreError> broken(std::string_view why);

  const redis::Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  redis::ReplyReader reader_;
};

}  // namespace lockbench::watch
