#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "watch/source.h"

// Recognizes the lock keys of common Redis libraries and parses the server's messages about them.
// Safe with any reply.
namespace lockbench::watch {

enum class KeyKind {
  unknown,
  text,   ///< a string whose value is the owner
  hash,   ///< fields are owners, values their re-entrancy counts
  other,  ///< not a lock
};

/// The kind from the reply to TYPE.
KeyKind kind_of_type(std::string_view type);

/// The replies about one key, from nearly the same moment.
struct RedisAnswers {
  redis::Reply time_left;  ///< reply to PTTL
  redis::Reply value;      ///< reply to GETRANGE or GET, or the fields from HSCAN
};

/// The lock's state without waiters; `ttl_left` counts from the reply. Nothing: the key is no lock,
/// such as a counter beside one.
std::optional<Sighting> read_redis_lock(const std::string& key, KeyKind kind,
                                        const RedisAnswers& answers);

/// What the name says of a key that may be an auxiliary one of a lock: queue, counter or times.
struct Companion {
  std::string lock;  ///< empty: no lock has such a name
  bool queue = false;
};
/// Nothing if the name can only be a lock's own.
std::optional<Companion> companion_of(std::string_view key);

/// Redisson's channel for releases, and the queue of its fair locks.
std::string redisson_channel(std::string_view lock);
std::string redisson_queue(std::string_view lock);

/// The event in a keyspace notification.
enum class KeyEvent {
  written,   ///< a value was written: the lock is held
  released,  ///< deleted by a client, or evicted by the server
  expired,
  timed,  ///< its TTL was changed
  none,
};
KeyEvent key_event_of(std::string_view name);

/// Whether notify-keyspace-events enables all events that locks need.
bool notifies_of_locks(std::string_view flags);

/// A message that a tracking server sends to __redis__:invalidate.
struct Invalidation {
  bool all = false;  ///< every key, after FLUSHALL
  std::vector<std::string> keys;
};

/// A message from SUBSCRIBE or PSUBSCRIBE.
struct Message {
  std::string channel, payload;
};

/// Nothing if the reply is something else.
std::optional<Invalidation> read_invalidation(const redis::Reply& reply);
std::optional<Message> read_message(const redis::Reply& reply);

}  // namespace lockbench::watch
