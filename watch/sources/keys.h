#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "watch/source.h"

// What names and values of keys say of locks. In patterns for names, * stands for any characters,
// ? for one.
namespace lockbench::watch {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name);
/// Whether the request names the lock and does not exclude it.
bool is_wanted(const Request& request, std::string_view name);

/// The common prefix of all names that match the pattern.
std::string prefix_of(std::string_view pattern);
/// The prefixes of all patterns, without those covered by a shorter one.
std::vector<std::string> merged_prefixes(const std::vector<std::string>& patterns);
/// The buckets of NATS in patterns for BUCKET/KEY. Other patterns are for other servers of the same
/// watch.
std::set<std::string> buckets_in(const std::vector<std::string>& patterns);

/// The pattern in Redis syntax, where brackets and backslashes must be escaped.
std::string redis_glob(std::string_view pattern);

/// As a regular expression: "550e8400-e29b-41d4-a716-446655440000", or the same without dashes.
inline constexpr const char* kUuid =
    "[[:xdigit:]]{32}|[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}";
bool is_uuid(std::string_view text);
/// A random token: hexadecimal digits, a UUID, or base 64.
bool is_random(std::string_view owner);
/// Whether the name suggests a lock.
bool sounds_like_lock(std::string_view name);
/// "lock:order:*" for "lock:order:1234": replaces numbers and ids.
std::string generalised(std::string_view name);

/// What the value of a lock's key says.
struct LockValue {
  std::string owner;  ///< empty: nobody, or an empty value
  /// A record that its holder rewrites, such as Kubernetes' Lease; else a token.
  bool is_record = false;
  std::optional<Duration> lasts;  ///< a record: for how long after each renewal
};

/// Reads a token, ShedLock's "ADDED:time@host", or a record with a field for the holder, in JSON or
/// as Kubernetes stores it. Nothing: the value names no owner, so its key is no lock. Takes any
/// bytes, also the first ones of a longer value.
std::optional<LockValue> read_lock_value(std::string_view value);

}  // namespace lockbench::watch
