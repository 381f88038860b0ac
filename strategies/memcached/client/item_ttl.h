#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "strategies/errors.h"

namespace lockbench::memcached {

/// memcached takes longer times for dates.
inline constexpr std::int64_t kLongestExpiry = 60LL * 60 * 24 * 30;

/// For how long a lock is asked for, and for how long it can be relied on. The server's clock ticks
/// in seconds, so an item may live up to one less than asked.
struct ItemTtl {
  std::int64_t asked = 0;  ///< seconds
  Duration kept{};

  static tl::expected<ItemTtl, StoreError> of(Duration ttl) {
    const std::int64_t whole = ceil_seconds(ttl);
    if (whole + 1 > kLongestExpiry) {
      return tl::unexpected(
          StoreError{StoreError::Kind::not_sent, "memcached: a TTL must be shorter than 30 days"});
    }
    return ItemTtl{.asked = whole + 1, .kept = std::chrono::seconds(whole)};
  }
};

}  // namespace lockbench::memcached
