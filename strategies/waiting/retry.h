#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "strategies/env.h"
#include "strategies/lock_strategy.h"
#include "strategies/waiting/wait_policy.h"

namespace lockbench {

/// The outcome of an acquisition that ended with this error. After a stop, an error that took no
/// effect counts as abandoned.
inline AcquireOutcome outcome_of(const StoreError& error, const std::stop_token& stop) {
  if (error.kind == StoreError::Kind::unanswered) return AcquireOutcome::unknown;
  if (error.kind == StoreError::Kind::refused) return AcquireOutcome::refused;
  return stop.stop_requested() ? AcquireOutcome::abandoned : AcquireOutcome::failed;
}

/// For a release command that returns whether it changed the lock.
inline ReleaseResult to_release_result(const StoreResult<bool>& changed) {
  if (!changed) return {ReleaseOutcome::failed, changed.error().message};
  return {*changed ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
}

/// The result of a renewal for no time, which is not sent: a store may end the lock and answer with
/// success, as Redis does with PEXPIRE 0. Nothing for a TTL that can be asked for.
inline std::optional<RenewResult> refused_renewal(Duration ttl) {
  if (ttl > Duration::zero()) return std::nullopt;
  return RenewResult{RenewOutcome::failed, "a lock cannot be renewed for no time"};
}

/// For a renewal command that returns whether it changed the lock: the lease is valid for `granted`
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

/// One attempt at a lock: a lease, nothing if another client holds it, or the store's failure.
using Attempt = StoreResult<std::optional<Lease>>;

/// Tries until the lock is granted, the deadline passes or a stop comes. `try_once(request)`
/// returns an Attempt. After each attempt that found the lock taken, `wait(earlier_waits, left)`
/// returns when it is worth trying again, at the latest after `left`, when one last attempt
/// follows.
template <class Wait, class TryOnce>
AcquireResult retry_after(Wait&& wait, const AcquireRequest& request, Env& env,
                          TryOnce&& try_once) {
  AcquireResult result;
  const auto ended = [&](AcquireOutcome outcome) {
    result.outcome = outcome;
    return std::move(result);
  };
  const bool may_wait = request.deadline > env.now();
  while (true) {
    ++result.attempts;
    Attempt attempt = try_once(request);
    if (!attempt) {
      result.reason = std::move(attempt.error().message);
      return ended(outcome_of(attempt.error(), request.stop));
    }
    if (attempt->has_value()) {
      result.lease = std::move(*attempt);
      return ended(AcquireOutcome::acquired);
    }
    if (!may_wait) return ended(AcquireOutcome::refused);
    const TimePoint now = env.now();
    if (now >= request.deadline) return ended(AcquireOutcome::timed_out);
    if (wait(result.attempts - 1, request.deadline - now) == WaitResult::stopped) {
      return ended(AcquireOutcome::abandoned);
    }
  }
}

/// The same, with sleeps by `policy` between the attempts.
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

/// The same for a lock with a random token and a TTL. `try_once(request, lease)` returns whether
/// the lock was granted; if so, it has set the lease's state. `take_back(lease, stop)` frees the
/// lock if this acquisition holds it: after a lost answer, and after a grant that came too late to
/// be valid.
template <class TryOnce, class TakeBack>
AcquireResult retry_with_token(const AcquireRequest& request, Env& env, const WaitPolicy& policy,
                               TryOnce&& try_once, TakeBack&& take_back) {
  Lease lease{.key = std::string(request.key), .token = random_token(env)};
  AcquireResult result = retry(request, env, policy, [&](const AcquireRequest& once) -> Attempt {
    const StoreResult<bool> granted = try_once(once, lease);
    if (!granted) return tl::unexpected(granted.error());
    if (!*granted) return std::nullopt;
    if (env.now() < lease.state->valid_until()) return std::optional(std::move(lease));
    if (auto back = take_back(lease, once.stop); !back) {
      back.error().kind = StoreError::Kind::unanswered;  // it may still be held
      return tl::unexpected(std::move(back.error()));
    }
    return std::nullopt;
  });
  if (result.outcome == AcquireOutcome::unknown) (void)take_back(lease, request.stop);
  return result;
}

}  // namespace lockbench
