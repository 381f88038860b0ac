#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "strategies/duration.h"

namespace lockbench {

enum class Mode { exclusive, shared };

/// The part of a lease that other threads change: renewal and session keep-alive extend its
/// validity and report a loss. All methods are thread-safe and lock-free.
class LeaseState {
 public:
  /// `confirmed_at`: a time at which, by the grant, the store held the lock for this client.
  explicit LeaseState(TimePoint valid_until, TimePoint confirmed_at = TimePoint::min())
      : valid_until_(valid_until), confirmed_at_(confirmed_at) {}

  /// The end of validity, counted from before the request was sent; TimePoint::max() if the lock
  /// does not expire.
  TimePoint valid_until() const { return valid_until_.load(std::memory_order_acquire); }
  /// The time of the latest grant or renewal; TimePoint::min() if unknown.
  TimePoint confirmed_at() const { return confirmed_at_.load(std::memory_order_acquire); }
  void extend(TimePoint valid_until, TimePoint confirmed_at) {
    confirmed_at_.store(confirmed_at, std::memory_order_release);
    valid_until_.store(valid_until, std::memory_order_release);
  }

  /// When the client learned that it lost the lock. The first report counts.
  std::optional<TimePoint> lost_at() const {
    const TimePoint at = lost_at_.load(std::memory_order_acquire);
    return at == kNotLost ? std::nullopt : std::optional(at);
  }
  void mark_lost(TimePoint at) {
    TimePoint expected = kNotLost;
    lost_at_.compare_exchange_strong(expected, at, std::memory_order_acq_rel);
  }

  bool valid_at(TimePoint now) const { return !lost_at() && now < valid_until(); }

 private:
  static constexpr TimePoint kNotLost = TimePoint::min();

  std::atomic<TimePoint> valid_until_;
  std::atomic<TimePoint> confirmed_at_;
  std::atomic<TimePoint> lost_at_{kNotLost};
};

class Renewal;

/// Proof of ownership of one key, for the client that acquired it. Release and renewal need the
/// same strategy instance; only `state` is shared with other threads.
struct Lease {
  std::string key;
  /// Identifies the owner at the store: a random token, a node's path or a time stamp.
  std::string token;
  Mode mode = Mode::exclusive;
  /// Grows with every grant of the key, if the strategy's traits say so.
  std::optional<std::uint64_t> fencing;
  std::shared_ptr<LeaseState> state;
  /// Renews the lease by a timer until the release; null without renewal.
  std::shared_ptr<Renewal> renewal;
};

/// When a held lease is renewed: after a share of its TTL, or at a fixed interval.
struct RenewalTiming {
  double first_share = 1.0 / 3;  ///< from the grant to the first renewal
  double share = 1.0 / 3;        ///< from one renewal to the next
  std::optional<Duration> every{};
  /// A failed renewal is repeated soon (after 5 ms, doubling), not at its next turn.
  bool retries_soon = false;

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
