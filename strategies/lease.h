#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "strategies/duration.h"

namespace lockbench {

enum class Mode { exclusive, shared };

/// The part of a lease that other threads touch: renewal and session keep-alive move the end of
/// validity and report a loss. All methods are thread-safe and take no lock.
class LeaseState {
 public:
  /// `confirmed_at`: when the store is known to have held the lock for us, by its grant.
  explicit LeaseState(TimePoint valid_until, TimePoint confirmed_at = TimePoint::min())
      : valid_until_(valid_until), confirmed_at_(confirmed_at) {}

  /// By the holder's own reckoning, from the moment before the request was sent; TimePoint::max()
  /// where the lock does not expire.
  TimePoint valid_until() const { return valid_until_.load(std::memory_order_acquire); }
  /// The latest grant or renewal; TimePoint::min() if that is not known.
  TimePoint confirmed_at() const { return confirmed_at_.load(std::memory_order_acquire); }
  void extend(TimePoint valid_until, TimePoint confirmed_at) {
    confirmed_at_.store(confirmed_at, std::memory_order_release);
    valid_until_.store(valid_until, std::memory_order_release);
  }

  /// When the client learned that the lock is no longer its own. The first report stays.
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

/// Proof of ownership of one key. Belongs to the client that acquired it and goes back to the same
/// strategy instance for release and renewal; only `state` is shared with other threads.
struct Lease {
  std::string key;
  /// What the store knows the owner by: a random token, a node's path, a time stamp, per strategy.
  std::string token;
  Mode mode = Mode::exclusive;
  /// Grows with every grant of the key, where the strategy's traits promise it.
  std::optional<std::uint64_t> fencing;
  std::shared_ptr<LeaseState> state;
  /// Renews it on a timer until it is released, where that was asked for.
  std::shared_ptr<Renewal> renewal;
};

}  // namespace lockbench
