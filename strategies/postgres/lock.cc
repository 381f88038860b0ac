#include "strategies/postgres/lock.h"

#include <algorithm>
#include <limits>

#include "strategies/number.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/waiting/retry.h"

namespace lockbench::postgres {

std::int64_t ServerQueueLock::lock_timeout(TimePoint deadline) {
  if (deadline == TimePoint::max()) return 0;
  // Rounded up, so that no client gives up early.
  const std::int64_t left = ceil_milliseconds(std::max(deadline - env_.now(), Duration(1)));
  return std::min<std::int64_t>(left, std::numeric_limits<std::int32_t>::max());
}

StoreResult<void> ServerQueueLock::prepare(const AcquireRequest& request, bool may_wait) {
  auto ready = session().use_schema(schema_of_key(request.key), request.key, request.stop);
  if (ready && may_wait) {
    ready = session().set_lock_timeout(lock_timeout(request.deadline), request.key, request.stop);
  }
  return ready;
}

StoreResult<Grant> ServerQueueLock::attempt(const AcquireRequest& request, bool may_wait) {
  return prepare(request, may_wait).and_then([&] { return take(request, may_wait); });
}

Lease ServerQueueLock::lease_of(const AcquireRequest& request, const Grant& grant) {
  // Confirmed at the grant, not at the request: then another client may have held the lock.
  Lease lease{.key = std::string(request.key),
              .token = random_token(env_),
              .mode = request.mode,
              .fencing = grant.fencing,
              .state = std::make_shared<LeaseState>(TimePoint::max(), env_.now())};
  granted(lease);
  return lease;
}

AcquireResult ServerQueueLock::acquire(const AcquireRequest& request) {
  const bool may_wait = request.deadline > env_.now();
  const auto grant = attempt(request, may_wait);
  if (!grant) {
    return {.outcome = outcome_of(grant.error(), request.stop),
            .attempts = 1,
            .reason = grant.error().message};
  }
  if (grant->kind != Grant::Kind::granted) {
    return {.outcome = grant->kind == Grant::Kind::stopped ? AcquireOutcome::abandoned
                       : may_wait                          ? AcquireOutcome::timed_out
                                                           : AcquireOutcome::refused,
            .attempts = 1,
            .deadlock = grant->kind == Grant::Kind::deadlock};
  }
  return {.outcome = AcquireOutcome::acquired, .lease = lease_of(request, *grant), .attempts = 1};
}

StoreResult<Grant> to_grant(const StoreResult<Answer>& answer, Session& session) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->kind == Answer::Kind::session_over) {
    return failure_at(session.display(), StoreError::Kind::rejected,
                      "the server has ended the session");
  }
  if (answer->kind == Answer::Kind::cancelled) return Grant{.kind = Grant::Kind::stopped};
  if (answer->kind == Answer::Kind::deadlock) return Grant{.kind = Grant::Kind::deadlock};
  const bool none = answer->done() && answer->rows == 0 && answer->value.empty();
  if (!answer->done() || none) return Grant{.kind = Grant::Kind::taken};
  const auto number = parse_number<std::uint64_t>(answer->value);
  if (answer->rows != 1 || !number) return session.not_understood("a number", *answer);
  return Grant{.kind = Grant::Kind::granted, .fencing = *number};
}

StoreResult<Answer> call_once(Session& session, const Statement& statement,
                              const std::string& schema, std::string_view key,
                              const std::vector<std::string>& parameters,
                              const std::stop_token& stop) {
  // With a stricter default of the user's than needed.
  constexpr int kAttempts = 5;
  if (auto ready = session.have_schema(schema, key, stop); !ready) {
    return tl::unexpected(std::move(ready.error()));
  }
  for (int attempt = 1;; ++attempt) {
    auto answer = session.call(statement, key, parameters, {.wait_until = {}, .stop = stop});
    if (!answer) return answer;
    if (answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session).error());
    }
    if (answer->kind != Answer::Kind::not_serializable || attempt == kAttempts) return answer;
  }
}

}  // namespace lockbench::postgres
