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
  if (error.kind == StoreError::Kind::refused) return AcquireOutcome::refused;
  return stop.stop_requested() ? AcquireOutcome::abandoned : AcquireOutcome::failed;
}

/// Tries until the lock is granted, the deadline passes or a stop comes. `try_once(request)`
/// returns an Attempt. After each that found the lock taken, `wait(earlier_waits, left)` waits in
/// between, and returns when it is worth asking again: after `left` at the latest, upon which one
/// more attempt follows. Bounded by the deadline.
template <class Wait, class TryOnce>
AcquireResult retry_after(Wait&& wait, const AcquireRequest& request, Env& env,
                          TryOnce&& try_once) {
  AcquireResult result;
  const bool may_wait = request.deadline > env.now();
  while (true) {
    ++result.attempts;
    Attempt attempt = try_once(request);
    if (!attempt) {
      result.outcome = outcome_of(attempt.error(), request.stop);
      if (result.outcome != AcquireOutcome::refused) {
        result.reason = std::move(attempt.error().message);
      }
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
    if (wait(result.attempts - 1, request.deadline - now) == WaitResult::stopped) {
      result.outcome = AcquireOutcome::abandoned;
      return result;
    }
  }
}

/// The same, asleep in between by `policy`.
template <class TryOnce>
AcquireResult retry(const AcquireRequest& request, Env& env, const WaitPolicy& policy,
                    TryOnce&& try_once) {
  return retry_after(
      [&](std::uint32_t earlier_waits, Duration left) {
        const Duration delay = std::min(policy.delay(earlier_waits, env), left);
        return env.wait(nullptr, env.now() + delay, request.stop);
      },
      request, env, try_once);
}

}  // namespace lockbench
