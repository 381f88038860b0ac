#pragma once

#include <optional>

#include "strategies/duration.h"

namespace lockbench {

/// When a held lease is renewed: after a share of its TTL, or at a fixed interval.
struct RenewalTiming {
  double first_share = 1.0 / 3;  ///< from the grant to the first renewal
  double share = 1.0 / 3;        ///< from one renewal to the next
  std::optional<Duration> every{};

  Duration first(Duration ttl) const { return every ? *every : share_of(ttl, first_share); }
  Duration next(Duration ttl) const { return every ? *every : share_of(ttl, share); }

 private:
  static Duration share_of(Duration ttl, double part) {
    return std::chrono::duration_cast<Duration>(ttl * part);
  }
};

/// The user's choice in place of the strategy's default.
struct RenewPolicy {
  enum class Kind { off, automatic, every };
  Kind kind = Kind::off;
  Duration period{};  ///< with `every`

  bool operator==(const RenewPolicy&) const = default;
};

}  // namespace lockbench
