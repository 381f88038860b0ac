#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/errors.h"

namespace lockbench::memcached {

/// memcached takes larger numbers for absolute times.
inline constexpr std::int64_t kLongestExpiry = 60LL * 60 * 24 * 30;

/// The expiry that is asked for, and how long the lock is valid. memcached reads its clock once a
/// second and drops the fraction. These readings come a little late, so that now and then one
/// counts two seconds: an item may live up to two seconds less than asked.
struct ItemTtl {
  std::int64_t asked = 0;  ///< seconds
  Duration kept{};

  static tl::expected<ItemTtl, StoreError> of(Duration ttl) {
    const std::int64_t whole = ceil_seconds(ttl);
    if (whole + 2 > kLongestExpiry) {
      return tl::unexpected(StoreError{StoreError::Kind::not_sent,
                                       "memcached: a TTL can be at most 30 days less 2 s"});
    }
    return ItemTtl{.asked = whole + 2, .kept = std::chrono::seconds(whole)};
  }
};

}  // namespace lockbench::memcached
