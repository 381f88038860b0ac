#pragma once

#include <cstdint>
#include <deque>
#include <ext/pb_ds/assoc_container.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "strategies/redis/client/connection.h"

namespace lockbench::simulate {

using redis::Reply;
using Words = std::span<const std::string_view>;

class LuaScripts;

/// Found without making a string.
struct TextHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// A list: its database and its key.
using ListName = std::pair<std::uint32_t, std::string>;

/// What a full Redis does, by maxmemory-policy.
enum class Eviction { refuse, volatile_keys, all_keys };

/// The data of one Redis server, and the commands that lock strategies send. Answers as Redis 7.0,
/// errors included; a command that it does not know is an error. It has no clock and no
/// connections: the caller passes the time, and serves commands that wait. Not thread-safe.
class RedisModel {
 public:
  /// What the server keeps for a connection.
  struct Session {
    std::uint32_t database = 0;
    bool in_transaction = false;
    bool aborted = false;  ///< a command of the transaction was refused
    std::vector<std::vector<std::string>> queued{};
  };
  /// A change, as a replica or an append-only file gets it: executed again at this time, it changes
  /// the same data in the same way.
  struct Write {
    std::uint32_t database = 0;
    std::int64_t at = 0;  ///< the server's time in milliseconds
    std::vector<std::string> words{};
  };

  RedisModel();
  ~RedisModel();
  RedisModel(RedisModel&&) noexcept;
  RedisModel& operator=(RedisModel&&) noexcept;

  /// `now`: by the server's clock. BLPOP does not wait: nil.
  Reply execute(Session& session, Words words, WallTime now);
  /// Executes another server's change.
  void apply(const Write& write);

  // What the server does beside its data.

  /// Returns the number of receivers; empty: none.
  std::function<std::int64_t(std::string_view channel, std::string_view message)> publish;
  /// Called with every change; empty: they are not recorded.
  std::function<void(Write write)> on_write;
  /// Lists that have grown since the last call, in order.
  std::vector<ListName> take_grown() { return std::exchange(grown_, {}); }

  /// Memory for keys and values, roughly as Redis counts it; 0: no limit. `random` chooses.
  void limit_memory(std::size_t bytes, Eviction eviction, std::function<std::uint64_t()> random);
  /// Removes a random key, as eviction does; returns whether there was one.
  bool evict(bool only_volatile, WallTime now);

  /// Takes the other's data, and keeps the rest.
  void copy_from(const RedisModel& other) { databases_ = other.databases_; }
  /// As SCRIPT FLUSH, or a restart.
  void forget_scripts();
  std::size_t keys() const;
  /// Of the keys of all databases that have not expired, in order.
  std::vector<std::string> names(WallTime now) const;

 private:
  friend class LuaScripts;

  struct ByScore {
    bool operator()(const std::pair<double, std::string>& a,
                    const std::pair<double, std::string>& b) const {
      return a < b;
    }
  };
  /// Ranks in logarithmic time, as a skip list gives them.
  using Order =
      __gnu_pbds::tree<std::pair<double, std::string>, __gnu_pbds::null_type, ByScore,
                       __gnu_pbds::rb_tree_tag, __gnu_pbds::tree_order_statistics_node_update>;
  using List = std::deque<std::string>;
  using Hash = ByText<std::string>;
  struct SortedSet {
    ByText<double> scores;
    Order order;
  };
  struct Entry {
    std::variant<std::string, List, Hash, SortedSet> value;
    std::int64_t expires = kNever;  ///< in milliseconds
  };
  using Keys = ByText<Entry>;
  struct Command {
    Reply (RedisModel::*execute)(Words words);
    int least, most;  ///< words, including the name; most 0: any number
    bool writes = false;
    bool grows = false;  ///< refused when memory is full
  };
  static constexpr std::int64_t kNever = INT64_MAX;

  static const Command* find_command(std::string_view name);
  Reply run_transaction(Session& session, WallTime now);
  /// A command by itself, or in a script or transaction.
  Reply run(Words words);
  Reply refuse(Words words, const Command* command) const;
  bool make_room();

  Keys& database() { return databases_[database_]; }
  Entry* find(std::string_view key);
  /// Null without the key. `wrong` is set if it has another type.
  template <class T>
  T* find_as(std::string_view key, bool& wrong);
  /// `act(value)` on the value of this type, or on an empty one; it may remove, but not add. The
  /// key goes with the last element.
  template <class T, class Act>
  Reply on(std::string_view key, const Act& act);
  /// `act(value)` adds to the value, which is made if it is missing.
  template <class T, class Act>
  Reply make(std::string_view key, const Act& act);
  Entry& put(std::string_view key, std::string value);
  void remove(std::string_view key);
  template <class T>
  void drop_if_empty(std::string_view key, const T& value);
  Reply expire_in(Words words, std::int64_t unit, bool absolute);
  Reply range(Words words, bool reverse);

  Reply set(Words words);
  Reply setnx(Words words);
  Reply get(Words words);
  Reply getset(Words words);
  Reply del(Words words);
  Reply exists(Words words);
  Reply expire(Words words) { return expire_in(words, 1000, false); }
  Reply pexpire(Words words) { return expire_in(words, 1, false); }
  Reply pexpireat(Words words) { return expire_in(words, 1, true); }
  Reply pttl(Words words);
  Reply incr(Words words);
  Reply hset(Words words);
  Reply hget(Words words);
  Reply hdel(Words words);
  Reply hexists(Words words);
  Reply hincrby(Words words);
  Reply rpush(Words words);
  Reply blpop(Words words);
  Reply zadd(Words words);
  Reply zrem(Words words);
  Reply zrange(Words words) { return range(words, false); }
  Reply zrevrange(Words words) { return range(words, true); }
  Reply zscore(Words words);
  Reply zrank(Words words);
  Reply zremrangebyscore(Words words);
  Reply publish_command(Words words);
  Reply time(Words words);
  Reply ping(Words words);
  Reply info(Words words);
  Reply eval(Words words) { return run_script(words, false); }
  Reply evalsha(Words words) { return run_script(words, true); }
  Reply run_script(Words words, bool by_sha);

  std::unordered_map<std::uint32_t, Keys> databases_;
  std::unique_ptr<LuaScripts> scripts_;  ///< made when first needed
  std::vector<ListName> grown_;
  std::size_t memory_limit_ = 0;
  Eviction eviction_ = Eviction::refuse;
  std::function<std::uint64_t()> random_;
  // Of the command under way.
  std::uint32_t database_ = 0;
  std::int64_t now_ = 0;  ///< in milliseconds
  std::int64_t now_micros_ = 0;
  bool changed_ = false;
};

}  // namespace lockbench::simulate
