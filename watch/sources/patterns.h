#pragma once

#include <string>
#include <string_view>
#include <vector>

// The patterns by which a user names locks: * stands for any characters, ? for one.
namespace lockbench::watch {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name);

/// What all names of the pattern begin with.
std::string prefix_of(std::string_view pattern);
/// The prefixes of all patterns, without those that begin with another one.
std::vector<std::string> merged_prefixes(const std::vector<std::string>& patterns);

/// The same pattern for Redis, to which brackets and backslashes mean something.
std::string redis_glob(std::string_view pattern);

/// As a regular expression: "550e8400-e29b-41d4-a716-446655440000", or the same without dashes.
inline constexpr const char* kUuid =
    "[[:xdigit:]]{32}|[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}";
bool is_uuid(std::string_view text);
/// A random token: hexadecimal digits, a UUID, or base 64.
bool is_random(std::string_view owner);
/// Whether a name alone suggests that it is a lock's.
bool sounds_like_lock(std::string_view name);
/// "lock:order:*" of "lock:order:1234": what looks like a number or an id is replaced.
std::string generalised(std::string_view name);

}  // namespace lockbench::watch
