#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "strategies/env.h"
#include "strategies/lock_strategy.h"
#include "strategies/waiting/wait_policy.h"

namespace lockbench {

/// One attempt at a lock: a lease, nothing if somebody else has it, or the store's failure.
using Attempt = StoreResult<std::optional<Lease>>;

/// The outcome of an acquisition that the store failed. A stop that cut an answer short leaves the
/// client not knowing, like any lost answer.
inline AcquireOutcome outcome_of(const StoreError& error, const std::stop_token& stop) {
  if (error.kind == StoreError::Kind::unanswered) return AcquireOutcome::unknown;
  return stop.stop_requested() ? AcquireOutcome::abandoned : AcquireOutcome::failed;
}

/// Tries until the lock is granted, the deadline passes or a stop comes, waiting by `policy` after
/// each attempt that found it taken. Bounded by the deadline; the last wait is cut to end with it,
/// and one more attempt follows. `try_once(request)` returns an Attempt.
template <class TryOnce>
AcquireResult retry(const AcquireRequest& request, Env& env, const WaitPolicy& policy,
                    TryOnce&& try_once) {
  AcquireResult result;
  const bool may_wait = request.deadline > env.now();
  while (true) {
    ++result.attempts;
    Attempt attempt = try_once(request);
    if (!attempt) {
      result.outcome = outcome_of(attempt.error(), request.stop);
      result.reason = std::move(attempt.error().message);
      return result;
    }
    if (attempt->has_value()) {
      result.outcome = AcquireOutcome::acquired;
      result.lease = std::move(*attempt);
      return result;
    }
    if (!may_wait) {
      result.outcome = AcquireOutcome::refused;
      return result;
    }
    const TimePoint now = env.now();
    if (now >= request.deadline) {
      result.outcome = AcquireOutcome::timed_out;
      return result;
    }
    // Clipped before it is added: a deadline may be the end of time.
    const Duration delay = std::min(policy.delay(result.attempts - 1, env), request.deadline - now);
    if (env.wait(nullptr, now + delay, request.stop) == WaitResult::stopped) {
      result.outcome = AcquireOutcome::abandoned;
      return result;
    }
  }
}

}  // namespace lockbench
