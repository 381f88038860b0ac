#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/duration.h"
#include "strategies/errors.h"
#include "strategies/lease.h"

namespace lockbench {

struct AcquireRequest {
  std::string_view key;
  Duration ttl{};
  /// When to give up. Not later than the call itself: one attempt, whose contention is `refused`.
  TimePoint deadline = TimePoint::max();
  Mode mode = Mode::exclusive;
  std::stop_token stop;
};

enum class AcquireOutcome {
  acquired,
  timed_out,  ///< contention outlasted the deadline
  refused,    ///< the lock said no, and waiting was not asked for or would not help
  failed,     ///< the store failed; nothing took effect
  unknown,    ///< the answer was lost: it may be held; cleaned up as far as possible
  abandoned,  ///< stopped while waiting
};

struct AcquireResult {
  AcquireOutcome outcome = AcquireOutcome::failed;
  std::optional<Lease> lease;  ///< set if and only if acquired
  std::uint32_t attempts = 0;  ///< how often the store was asked for the lock
  std::string reason;          ///< for failed and unknown: one line
};

enum class ReleaseOutcome {
  released,
  not_owner,  ///< lost already, or another's: nothing was freed
  failed,     ///< the store failed; the lock may still be held until it expires
};

struct ReleaseResult {
  ReleaseOutcome outcome = ReleaseOutcome::failed;
  std::string reason;
};

enum class RenewOutcome {
  renewed,
  not_owner,    ///< lost already, or another's: the lease is marked lost
  failed,       ///< the store failed; validity is unchanged
  unsupported,  ///< this lock has no validity to prolong
};

struct RenewResult {
  RenewOutcome outcome = RenewOutcome::failed;
  std::string reason;
};

/// A way to lock, as one client sees it. One instance per client, used on that client's thread
/// only; other threads touch nothing but a lease's state. An instance may hold leases on several
/// keys at once. Constructing one never connects; destroying it never throws and leaves no thread,
/// key or session behind. Methods report failures as values and throw only on programming errors.
class LockStrategy {
 public:
  virtual ~LockStrategy() = default;

  /// Reaches the store, or says by which endpoint it could not. Later failures reconnect by
  /// themselves.
  virtual StoreResult<void> connect() = 0;

  /// Blocks until the lock is held, the deadline passes, a stop is requested (at most 100 ms
  /// later), or the store fails. Never later than the deadline by more than one round trip.
  virtual AcquireResult acquire(const AcquireRequest& request) = 0;

  /// Gives the lock back, once. Whether that is safe for a lease that has run out is the strategy's
  /// character; its descriptor says.
  virtual ReleaseResult release(const Lease& lease) = 0;

  /// Prolongs the lease to `ttl` from now. On success the lease's validity has moved.
  virtual RenewResult renew(const Lease& lease, Duration ttl) = 0;
};

}  // namespace lockbench
