#include "watch/sources/redis_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/number.h"
#include "watch/sources/keys.h"

namespace lockbench::watch {
namespace {

using redis::Reply;

/// Longer values are cut: the ledger only keeps a hash.
constexpr std::size_t kLongestToken = 256, kMostOwners = 1024;

std::string owner_of(std::string_view text) { return std::string(text.substr(0, kLongestToken)); }

bool is_text(const Reply& reply) {
  return reply.type == Reply::Type::string || reply.type == Reply::Type::status;
}

/// Reads alternating owners and counts; Redisson's read-write locks also have a `mode` field.
bool read_owners(const Reply& hash, Sighting& sighting) {
  const auto& parts = hash.elements;
  if (parts.size() % 2 != 0 || parts.size() > 2 * kMostOwners) return false;
  bool shared = false;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    if (!is_text(parts[i]) || !is_text(parts[i + 1])) return false;
    const std::string &field = parts[i].text, &value = parts[i + 1].text;
    if (field == "mode") {
      if (value != "read" && value != "write") return false;
      shared = value == "read";
      continue;
    }
    const auto count = parse_number<std::int64_t>(value);
    if (!count || *count < 1) return false;
    sighting.holders.push_back(
        {.owner = owner_of(field), .entries = static_cast<std::uint64_t>(*count)});
  }
  for (Party& holder : sighting.holders) holder.shared = shared;
  return true;
}

void read_time_left(const Reply& reply, Sighting& sighting) {
  constexpr std::int64_t kForever = -1, kLongest = std::int64_t{1000} * 60 * 60 * 24 * 36'525;
  if (reply.type != Reply::Type::integer || sighting.holders.empty()) return;
  if (reply.integer == kForever) {
    sighting.no_ttl = true;
  } else if (reply.integer >= 0) {
    sighting.ttl_left = std::chrono::milliseconds(std::min(reply.integer, kLongest));
  }
}

/// A counter beside a lock outlives it; it may be a hash of several.
bool is_counter(const std::string& key, const Sighting& sighting) {
  if (!sighting.no_ttl || !companion_of(key)) return false;
  return sighting.shape == Shape::redisson_hash ||
         parse_number<std::uint64_t>(sighting.holders.front().owner).has_value();
}

}  // namespace

KeyKind kind_of_type(std::string_view type) {
  if (type == "string") return KeyKind::text;
  if (type == "hash") return KeyKind::hash;
  return type == "none" ? KeyKind::unknown : KeyKind::other;
}

std::optional<Sighting> read_redis_lock(const std::string& key, KeyKind kind,
                                        const RedisAnswers& answers) {
  Sighting sighting;
  sighting.lock = key;
  bool observed = false;
  const Reply& value = answers.value;
  if (kind == KeyKind::hash) {
    sighting.shape = Shape::redisson_hash;
    if (value.type != Reply::Type::array || !read_owners(value, sighting)) return std::nullopt;
  } else {
    sighting.shape = Shape::token;
    if (is_text(value)) {
      const auto read = read_lock_value(value.text);
      if (!read) return std::nullopt;
      // A lease by observation has no TTL: its candidates watch the record.
      observed = read->lasts.has_value();
      if (!read->is_record || !read->owner.empty()) {
        sighting.holders.push_back({.owner = read->owner});
      }
    } else if (!value.is_nil()) {
      return std::nullopt;
    }
  }
  if (!observed || !answers.time_left.is_integer(-1)) read_time_left(answers.time_left, sighting);
  if (is_counter(key, sighting)) return std::nullopt;
  return sighting;
}

std::optional<Companion> companion_of(std::string_view key) {
  static constexpr std::array<std::string_view, 12> kSuffixes{
      ":queue",   ":fencing", ":fence",   ":fencing_token",  ":liveness",    ":numbers",
      ":readers", ":writers", ":counter", ":rwlock_timeout", ":timeout_set", ":channel"};
  for (const std::string_view suffix : kSuffixes) {
    if (key.size() <= suffix.size() || !key.ends_with(suffix)) continue;
    return Companion{.lock = std::string(key.substr(0, key.size() - suffix.size())),
                     .queue = suffix == kSuffixes.front()};
  }
  for (const std::string_view prefix : {"redisson_lock_queue:", "redisson_lock_timeout:",
                                        "redisson_rwlock:", "redisson_unlock_latch:"}) {
    if (key.starts_with(prefix)) return Companion{};
  }
  const std::size_t wake = key.find(":wake:");
  if (wake == std::string_view::npos || wake == 0) return std::nullopt;
  return Companion{.lock = std::string(key.substr(0, wake))};
}

std::string redisson_channel(std::string_view lock) {
  return fmt::format("redisson_lock__channel:{{{}}}", lock);
}
std::string redisson_queue(std::string_view lock) {
  return fmt::format("redisson_lock_queue:{{{}}}", lock);
}

KeyEvent key_event_of(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kWrites{
      "set",     "getset",       "setrange", "append", "incrby",    "incrbyfloat", "hset",
      "hincrby", "hincrbyfloat", "hdel",     "hsetnx", "rename_to", "restore",     "copy_to"};
  if (name == "expired") return KeyEvent::expired;
  if (name == "del" || name == "unlink" || name == "evicted" || name == "rename_from" ||
      name == "move_from") {
    return KeyEvent::released;
  }
  if (name == "expire" || name == "persist") return KeyEvent::timed;
  return std::ranges::find(kWrites, name) == kWrites.end() ? KeyEvent::none : KeyEvent::written;
}

bool notifies_of_locks(std::string_view flags) {
  const auto has = [&](char flag) { return flags.find(flag) != std::string_view::npos; };
  // A enables all classes. Otherwise require these, but not evictions (e).
  return has('K') && (has('A') || (has('g') && has('$') && has('h') && has('x')));
}

std::optional<Invalidation> read_invalidation(const Reply& reply) {
  const bool fits = reply.type == Reply::Type::array && reply.elements.size() == 3 &&
                    reply.elements[0].is_text("message") &&
                    reply.elements[1].is_text("__redis__:invalidate");
  if (!fits) return std::nullopt;
  const Reply& keys = reply.elements[2];
  if (keys.is_nil()) return Invalidation{.all = true, .keys = {}};
  if (keys.type != Reply::Type::array) return std::nullopt;
  Invalidation read;
  for (const Reply& key : keys.elements) {
    if (key.type == Reply::Type::string) read.keys.push_back(key.text);
  }
  return read;
}

std::optional<Message> read_message(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.empty()) return std::nullopt;
  const auto& parts = reply.elements;
  const bool of_pattern = parts.size() == 4 && parts[0].is_text("pmessage");
  const bool of_channel = parts.size() == 3 && parts[0].is_text("message");
  if (!of_pattern && !of_channel) return std::nullopt;
  const Reply &channel = parts[parts.size() - 2], &payload = parts.back();
  if (channel.type != Reply::Type::string || payload.type != Reply::Type::string) {
    return std::nullopt;
  }
  return Message{.channel = channel.text, .payload = payload.text};
}

}  // namespace lockbench::watch
