#pragma once

#include "strategies/env.h"
#include "strategies/lock_strategy.h"

// From a store's answers to the outcomes of the interface.
namespace lockbench {

/// The outcome of an acquisition that ended with this error. After a stop, an error that took no
/// effect counts as abandoned.
inline AcquireOutcome outcome_of(const StoreError& error, const std::stop_token& stop) {
  if (error.kind == StoreError::Kind::unanswered) return AcquireOutcome::unknown;
  if (error.kind == StoreError::Kind::refused) return AcquireOutcome::refused;
  return stop.stop_requested() ? AcquireOutcome::abandoned : AcquireOutcome::failed;
}

/// For a release command that tells whether it changed the lock.
inline ReleaseResult to_release_result(const StoreResult<bool>& changed) {
  if (!changed) return {ReleaseOutcome::failed, changed.error().message};
  return {*changed ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
}

/// For a renewal command that tells whether it changed the lock: the lease is valid for `granted`
/// from `asked_at` on, or lost.
inline RenewResult to_renew_result(const StoreResult<bool>& changed, const Lease& lease, Env& env,
                                   TimePoint asked_at, Duration granted) {
  if (!changed) return {RenewOutcome::failed, changed.error().message};
  if (!*changed) {
    lease.state->mark_lost(env.now());
    return {RenewOutcome::not_owner, {}};
  }
  lease.state->extend(asked_at + granted, asked_at);
  return {RenewOutcome::renewed, {}};
}

}  // namespace lockbench
