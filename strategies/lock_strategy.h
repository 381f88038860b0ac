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
  /// When to give up. A deadline in the past means one attempt, which is `refused` if the lock is
  /// taken.
  TimePoint deadline = TimePoint::max();
  Mode mode = Mode::exclusive;
  std::stop_token stop;
};

enum class AcquireOutcome {
  acquired,
  timed_out,  ///< taken until the deadline, or until the store found a deadlock
  refused,    ///< taken, and the request does not wait; or not as safe as requested
  failed,     ///< the store failed; the request took no effect
  unknown,    ///< the answer was lost and the lock may be held; cleaned up if possible
  abandoned,  ///< stopped while waiting
};

struct AcquireResult {
  AcquireOutcome outcome = AcquireOutcome::failed;
  std::optional<Lease> lease{};  ///< set only if acquired
  std::uint32_t attempts = 0;    ///< how often it asked the store for the lock
  /// `timed_out` as the store has found a deadlock: release all locks and try again.
  bool deadlock = false;
  std::string reason{};  ///< one line; empty if the lock was granted or was taken
};

enum class ReleaseOutcome {
  released,
  not_owner,  ///< the client no longer held the lock; nothing was released
  failed,     ///< the store failed; the lock may still be held until it expires
};

struct ReleaseResult {
  ReleaseOutcome outcome = ReleaseOutcome::failed;
  std::string reason;
};

enum class RenewOutcome {
  renewed,
  not_owner,    ///< the client no longer held the lock; the lease is marked lost
  failed,       ///< the store failed, or the TTL is not positive; validity is unchanged
  unsupported,  ///< this lock does not expire, or is renewed otherwise
};

struct RenewResult {
  RenewOutcome outcome = RenewOutcome::failed;
  std::string reason;
};

/// A lock strategy, for one client: each client has an instance and uses it on one thread; other
/// threads use only a lease's state. An instance may hold leases on several keys at a time. The
/// constructor does not connect; the destructor does not throw and leaves no thread, key or session
/// behind. Failures are returned; exceptions mean programming errors.
class LockStrategy {
 public:
  virtual ~LockStrategy() = default;

  /// Connects to the store. The error names the endpoint. After later failures the strategy
  /// reconnects by itself.
  virtual StoreResult<void> connect() = 0;

  /// Blocks until the lock is held, the deadline passes (at most one round trip later), a stop is
  /// requested (at most StrategyOptions::after_stop later), or the store fails.
  virtual AcquireResult acquire(const AcquireRequest& request) = 0;

  /// Releases the lock, once. The descriptor says whether that is safe after the lease has expired.
  virtual ReleaseResult release(const Lease& lease) = 0;

  /// Extends the lease to `ttl` from now and updates its state. By default `unsupported`.
  virtual RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) {
    return {RenewOutcome::unsupported, {}};
  }
};

}  // namespace lockbench
