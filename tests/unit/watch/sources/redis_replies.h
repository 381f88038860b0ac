#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "strategies/redis/client/protocol.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_lock.h"

// What a Redis that is watched answers.
namespace lockbench::watch {

inline TimePoint at(int ms) {
  return TimePoint(std::chrono::seconds(1000)) + std::chrono::milliseconds(ms);
}

inline redis::Reply parsed(const std::string& bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes);
  return reader.next().value().value();
}
inline redis::Reply number(std::int64_t value) {
  return parsed(":" + std::to_string(value) + "\r\n");
}
inline redis::Reply text(const std::string& value) {
  return parsed("$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
}

inline std::optional<Sighting> held_by(const std::string& owner, int ttl = 1000,
                                       const std::string& key = "k") {
  return read_redis_lock(key, KeyKind::text, {number(ttl), text(owner)});
}
inline std::optional<Sighting> free_key(const std::string& key = "k") {
  return read_redis_lock(key, KeyKind::text, {number(-2), redis::Reply()});
}

}  // namespace lockbench::watch
