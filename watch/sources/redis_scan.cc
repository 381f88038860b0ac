#include "watch/sources/redis_scan.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

using redis::Reply;

constexpr std::size_t kMostPatterns = 1000, kMostOthers = 10'000;

/// A random token: hexadecimal digits, a UUID, or base 64.
bool is_random(std::string_view owner) {
  constexpr std::size_t kLeastSize = 16, kMostSize = 128;
  if (owner.size() < kLeastSize || owner.size() > kMostSize) return false;
  const bool plain = std::ranges::all_of(owner, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '+' || c == '/' || c == '=' ||
           c == ':' || c == '.';
  });
  const bool digits =
      std::ranges::any_of(owner, [](unsigned char c) { return std::isdigit(c) != 0; });
  return plain && digits;
}

}  // namespace

KeyScan::KeyScan(redis::Connection& connection, std::vector<std::string> patterns)
    : connection_(connection) {
  for (const std::string& pattern : patterns) globs_.push_back(redis_glob(pattern));
  if (globs_.empty()) globs_.emplace_back("*");
}

StoreResult<std::vector<std::string>> KeyScan::step(const std::stop_token& stop) {
  auto reply = connection_.call({"SCAN", cursor_, "MATCH", globs_[pattern_], "COUNT", "250"}, stop);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  std::vector<std::string> keys;
  const auto& parts = reply->elements;
  const bool fits = reply->type == Reply::Type::array && parts.size() == 2 &&
                    parts[0].type == Reply::Type::string && parts[1].type == Reply::Type::array;
  if (!fits) {
    connection_.close();
    return tl::unexpected(StoreError{StoreError::Kind::unanswered,
                                     connection_.display() + ": an answer to SCAN that is none"});
  }
  for (const Reply& key : parts[1].elements) {
    if (key.type == Reply::Type::string) keys.push_back(key.text);
  }
  cursor_ = parts[0].text;
  if (cursor_ == "0") pattern_ = (pattern_ + 1) % globs_.size();
  return keys;
}

bool KeyProposals::is_new(const std::string& key) {
  if (companion_of(key)) return false;
  const std::string pattern = generalised(key);
  if (patterns_.contains(pattern) || others_.contains(pattern)) return false;
  // Where keys are of so many kinds, only what is called a lock is looked at.
  const bool many = others_.size() >= kMostOthers;
  return patterns_.size() < kMostPatterns && (!many || sounds_like_lock(key));
}

void KeyProposals::leave_out(const std::string& pattern) {
  if (others_.size() < kMostOthers) others_.insert(pattern);
}

std::optional<std::string> KeyProposals::judge(const std::string& key,
                                               const RedisLook::Answer& looked) {
  const std::string pattern = generalised(key);
  if (!looked.state || looked.state->holders.empty()) {
    if (!looked.state) leave_out(pattern);
    return std::nullopt;
  }
  const Sighting& state = *looked.state;
  constexpr Duration kLongestTtl = std::chrono::minutes(10);
  const bool brief = state.ttl_left && *state.ttl_left <= kLongestTtl;
  const std::string& owner = state.holders.front().owner;
  const bool redisson = state.shape == Shape::redisson_hash && owner.find(':') != std::string::npos;
  const bool token = state.shape != Shape::redisson_hash && brief && is_random(owner);
  if (!redisson && !token && !sounds_like_lock(key)) {
    leave_out(pattern);
    return std::nullopt;
  }
  patterns_.insert(pattern);
  return pattern;
}

}  // namespace lockbench::watch
