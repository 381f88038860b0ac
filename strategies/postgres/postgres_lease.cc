#include <array>

#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"
#include "strategies/waiting/retry.h"

namespace lockbench::postgres {
namespace {

// $1: the key, $2: the owner's token, $3: the TTL in milliseconds.
const Statement take_row{
    .name = "INSERT",
    .sql =
        "INSERT INTO lease AS l (key, owner, lock_until) "
        "VALUES ($1, $2, clock_timestamp() + $3::int * interval '1 millisecond') "
        "ON CONFLICT (key) DO UPDATE SET owner = $2, "
        "lock_until = clock_timestamp() + $3::int * interval '1 millisecond' "
        "WHERE l.lock_until <= clock_timestamp()",
    .answered = "INSERT"};
const Statement free_row{.name = "UPDATE",
                         .sql =
                             "UPDATE lease SET owner = NULL, lock_until = clock_timestamp() "
                             "WHERE key = $1 AND owner = $2",
                         .answered = "UPDATE"};
const Statement extend_row{
    .name = "UPDATE",
    .sql =
        "UPDATE lease SET lock_until = clock_timestamp() + $3::int * interval '1 millisecond' "
        "WHERE key = $1 AND owner = $2",
    .answered = "UPDATE"};

/// A row per key with its owner and the end of the lease, by the database's clock. The statements
/// use clock_timestamp(): now() is the start of the transaction, which may lie before a wait for
/// the row.
class LeaseLock : public LockStrategy {
 public:
  explicit LeaseLock(const Context& context)
      : env_(context.env),
        waiting_(context.waiting),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env_) {}

  StoreResult<void> connect() override { return session_.connect(); }

  AcquireResult acquire(const AcquireRequest& request) override {
    // Before the attempts: a refused attempt has no reason, and this refusal needs one.
    auto ready = session_.use_schema(schema_of_key(request.key), request.key, request.stop);
    if (!ready) {
      return {.outcome = outcome_of(ready.error(), request.stop),
              .attempts = 1,
              .reason = ready.error().message};
    }
    return retry_with_token(
        request, env_, waiting_,
        [&](const AcquireRequest& once, Lease& lease) { return insert_or_take(once, lease); },
        [&](const Lease& lease, const std::stop_token& stop) {
          return change(free_row, lease, {}, stop);
        });
  }

  ReleaseResult release(const Lease& lease) override {
    return to_release_result(change(free_row, lease, {}, {}));
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env_.now();
    const std::int64_t milliseconds = ceil_milliseconds(ttl);
    return to_renew_result(change(extend_row, lease, std::to_string(milliseconds), {}), lease, env_,
                           asked_at, std::chrono::milliseconds(milliseconds));
  }

 private:
  StoreResult<bool> insert_or_take(const AcquireRequest& request, Lease& lease) {
    const TimePoint asked_at = env_.now();
    const std::int64_t milliseconds = ceil_milliseconds(request.ttl);
    auto granted = change(take_row, lease, std::to_string(milliseconds), request.stop);
    if (granted && *granted) {
      lease.state = std::make_shared<LeaseState>(asked_at + std::chrono::milliseconds(milliseconds),
                                                 asked_at);
    }
    return granted;
  }

  /// Whether the lease's row was changed. A row that another client keeps locked for longer than
  /// the session's lock_timeout counts as taken; a release or renewal by its holder then fails.
  StoreResult<bool> change(const Statement& statement, const Lease& lease,
                           const std::string& milliseconds, const std::stop_token& stop) {
    const auto ready = session_.use_schema(schema_of_key(lease.key), lease.key, stop);
    if (!ready) return tl::unexpected(ready.error());
    const std::array<std::string, 3> parameters{lease.key, lease.token, milliseconds};
    const auto answer = session_.call(statement, lease.key,
                                      std::span(parameters).first(milliseconds.empty() ? 2 : 3),
                                      {.wait_until = {}, .stop = stop});
    if (!answer) return tl::unexpected(answer.error());
    if (answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session_).error());
    }
    if (!answer->done()) {
      if (&statement == &take_row) return false;
      return failure_at(session_.display(), StoreError::Kind::rejected,
                        "the row stayed locked too long");
    }
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return answer->rows == 1;
  }

  Env& env_;
  const WaitPolicy waiting_;
  Session session_;
};

const Registration postgres_lease(with_known_hazards({
    .name = "postgres-lease",
    .backend = "postgres",
    .summary = "A row per key with owner and lock_until, by the database's clock",
    .acquire_commands = {"INSERT key, owner, lock_until ON CONFLICT DO UPDATE WHERE lock_until <= "
                         "clock_timestamp()"},
    .release_commands = {"UPDATE lock_until WHERE key AND owner"},
    .source = "lease tables as in ShedLock, here with an owner for each grant",
    .typical = true,
    .libraries = {{"Java",
                   "ShedLock JdbcTemplateLockProvider (with usingDbTime; its owner is the host)",
                   "lockAtMostFor = {ttl}"},
                  {"Go", "cirello.io/pglock", "WithLeaseDuration({ttl}), WithHeartbeatFrequency"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic},
    .make = construct<LeaseLock>,
}));

}  // namespace
}  // namespace lockbench::postgres
