#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/errors.h"

namespace lockbench::memcached {

/// memcached takes larger numbers for absolute times.
inline constexpr std::int64_t kLongestExpiry = 60LL * 60 * 24 * 30;

/// memcached reads its clock once a second, a little late each time, so that now and then it counts
/// two seconds at once: an item may live so much less than asked, and is asked to live longer.
inline constexpr std::chrono::seconds kKeptLonger{2};

/// The expiry that is asked for, and how long the lock is valid.
struct ItemTtl {
  std::int64_t asked = 0;  ///< seconds
  Duration kept{};

  static tl::expected<ItemTtl, StoreError> of(Duration ttl) {
    const std::chrono::seconds kept(ceil_seconds(ttl));
    const std::int64_t asked = (kept + kKeptLonger).count();
    if (asked > kLongestExpiry) {
      return tl::unexpected(StoreError{StoreError::Kind::not_sent,
                                       "memcached: a TTL can be at most 30 days less 2 s"});
    }
    return ItemTtl{.asked = asked, .kept = kept};
  }
};

}  // namespace lockbench::memcached
