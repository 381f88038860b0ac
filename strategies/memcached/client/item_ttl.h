#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/errors.h"

namespace lockbench::memcached {

/// memcached takes larger numbers for absolute times.
inline constexpr std::int64_t kLongestExpiry = 60LL * 60 * 24 * 30;

/// An item is asked to live for so much longer than its lock.
inline constexpr std::chrono::seconds kKeptLonger{2};

/// The expiry that is asked for, and how long the lock is valid. memcached reads its clock once a
/// second and drops the fraction. These readings come a little late, so that now and then one
/// counts two seconds: an item may live up to two seconds less than asked.
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
