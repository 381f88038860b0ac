#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "watch/source.h"

// What the keys of locks in Redis look like, whatever library wrote them, and what the server says
// of them. Takes any answer.
namespace lockbench::watch {

enum class KeyKind {
  unknown,
  text,   ///< GET tells the owner
  hash,   ///< its fields are the owners and how often each holds it
  other,  ///< no lock
};

/// Of the answer to TYPE.
KeyKind kind_of_type(std::string_view type);

/// The answers about one key, of one moment or nearly so.
struct RedisAnswers {
  redis::Reply time_left;  ///< to PTTL
  redis::Reply value;      ///< to GETRANGE, GET, or HSCAN's fields
};

/// The lock's state, without waiters; `ttl_left` counts from the answer. Nothing: it is no lock.
std::optional<Sighting> read_redis_lock(const std::string& key, KeyKind kind,
                                        const RedisAnswers& answers);

/// A key that stands beside a lock's own: a queue, numbers, times.
struct Companion {
  std::string lock;
  bool queue = false;
};
/// Nothing: a lock's own key, as far as its name tells.
std::optional<Companion> companion_of(std::string_view key);

/// Where Redisson announces releases, and where its fair locks queue.
std::string redisson_channel(std::string_view lock);
std::string redisson_queue(std::string_view lock);

/// What a keyspace notification says of a key.
enum class KeyEvent {
  written,   ///< a value was written, so it is held
  released,  ///< deleted, or evicted, which the holder does not know
  expired,
  timed,  ///< its TTL was changed
  none,
};
KeyEvent key_event_of(std::string_view name);

/// Whether notify-keyspace-events has all that locks need.
bool notifies_of_locks(std::string_view flags);

/// What a server that tracks keys sends to __redis__:invalidate.
struct Invalidation {
  bool all = false;  ///< every key, after FLUSHALL
  std::vector<std::string> keys;
};

/// A message of a channel or of a pattern.
struct Message {
  std::string channel, payload;
};

/// Nothing: it is something else.
std::optional<Invalidation> read_invalidation(const redis::Reply& reply);
std::optional<Message> read_message(const redis::Reply& reply);

}  // namespace lockbench::watch
