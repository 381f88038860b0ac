#include "watch/sources/memcached_book.h"

#include <algorithm>
#include <utility>

namespace lockbench::watch {

Sighting MemcachedBook::looked(const std::string& key, const std::optional<memcached::Glance>& item,
                               TimePoint asked_at, TimePoint answered_at) {
  constexpr std::size_t kLongestOwner = 256;
  const auto [known, first] = ends_.try_emplace(key);
  SteadyTime& end = known->second;
  const SteadyTime before = std::exchange(end, {});
  Sighting seen;
  seen.lock = key;
  seen.at = asked_at;
  seen.shape = Shape::token;
  seen.first_look = first;
  if (!item) return seen;
  seen.holders.push_back({.owner = item->value.substr(0, kLongestOwner)});
  seen.no_ttl = !item->seconds_left;
  if (item->seconds_left) {
    const Duration left =
        std::chrono::seconds(std::min(*item->seconds_left, ceil_seconds(kLongestDuration)));
    // Rounded up to a whole second: it ends then at the latest.
    end = SteadyTime::between(asked_at + left - std::chrono::seconds(1), answered_at + left);
    end.told = answered_at + left;
    if (end.may_be(before)) end.told = std::min(end.told, before.told);
    if (end.told > asked_at) seen.ttl_left = end.told - asked_at;
  }
  return seen;
}

}  // namespace lockbench::watch
