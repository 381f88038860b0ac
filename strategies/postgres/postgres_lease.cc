#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"
#include "strategies/renewal.h"
#include "strategies/waiting/retry.h"

namespace lockbench::postgres {
namespace {

// All statements name the schema and are not prepared: a transaction pooler may give each to
// another session. They use clock_timestamp(): now() is the start of the transaction, which may lie
// before a wait for the row. $1: the key, $2: the owner's token.

/// $3: the TTL in milliseconds.
Statement take_row(const std::string& schema) {
  return {.name = "INSERT",
          .sql = fmt::format(
              "INSERT INTO {}.lease AS l (key, owner, locked_at, lock_until) "
              "SELECT $1::text, $2::text, clock_timestamp(), "
              "clock_timestamp() + $3::int * interval '1 millisecond' "
              "FROM set_config('lock_timeout', $4, true) "
              "ON CONFLICT (key) DO UPDATE SET owner = $2, locked_at = clock_timestamp(), "
              "lock_until = clock_timestamp() + $3::int * interval '1 millisecond' "
              "WHERE l.lock_until <= clock_timestamp()",
              schema),
          .how = Statement::How::once,
          .answered = "INSERT"};
}

/// $3: for how many milliseconds from its grant the lock stays taken.
Statement free_row(const std::string& schema) {
  return {.name = "UPDATE",
          .sql = fmt::format(
              "UPDATE {}.lease SET owner = NULL, lock_until = "
              "greatest(clock_timestamp(), locked_at + $3::int * interval '1 millisecond') "
              "FROM set_config('lock_timeout', $4, true) WHERE key = $1 AND owner = $2",
              schema),
          .how = Statement::How::once,
          .answered = "UPDATE"};
}

/// $3: the TTL in milliseconds.
Statement extend_row(const std::string& schema) {
  return {.name = "UPDATE",
          .sql = fmt::format("UPDATE {}.lease SET lock_until = clock_timestamp() + "
                             "$3::int * interval '1 millisecond' "
                             "FROM set_config('lock_timeout', $4, true) "
                             "WHERE key = $1 AND owner = $2",
                             schema),
          .how = Statement::How::once,
          .answered = "UPDATE"};
}

/// The same for many: $1 to $3 are arrays. Answers with the owners of those that were extended.
Statement extend_rows(const std::string& schema) {
  return {.name = "UPDATE",
          .sql = fmt::format(
              "WITH extended AS (UPDATE {}.lease AS l SET lock_until = clock_timestamp() + "
              "asked.ttl * interval '1 millisecond' "
              "FROM unnest($1::text[], $2::text[], $3::int[]) AS asked (key, owner, ttl), "
              "set_config('lock_timeout', $4, true) "
              "WHERE l.key = asked.key AND l.owner = asked.owner RETURNING l.owner) "
              "SELECT string_agg(owner, ' ') FROM extended",
              schema),
          .how = Statement::How::once,
          .answered = "SELECT"};
}

/// Extends many leases with one statement for each schema, which is that of a run.
class LeaseRenewals : public RenewalChannel {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env)
      : timeout_(timeout), session_(endpoint, timeout, env) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
    Batch& batch = queued_[schema_of_key(key)];
    batch.keys.push_back(in_quotes(key, '"'));
    batch.owners.emplace_back(token);
    batch.ttls.push_back(ceil_milliseconds(ttl));
    order_.emplace_back(token);
  }

  void flush(const std::stop_token& stop) override {
    extended_.clear();
    failed_.clear();
    for (const auto& [schema, batch] : std::exchange(queued_, {})) {
      std::vector<std::string> parameters{fmt::format("{{{}}}", fmt::join(batch.keys, ",")),
                                          fmt::format("{{{}}}", fmt::join(batch.owners, ",")),
                                          fmt::format("{{{}}}", fmt::join(batch.ttls, ","))};
      const auto answer =
          call_once(session_, extend_rows, schema, {}, std::move(parameters), timeout_, stop);
      if (answer && answer->done()) {
        std::string_view owners = answer->value;
        while (!owners.empty()) {
          std::string_view rest = cut_at(owners, ' ');
          extended_.emplace(owners);
          owners = rest;
        }
      } else {
        failed_.insert(batch.owners.begin(), batch.owners.end());
        failure_ = answer ? session_.display() + ": the rows stayed locked too long"
                          : answer.error().message;
      }
    }
  }

  RenewalAnswer answer(const std::stop_token&) override {
    const std::string owner = std::move(order_.front());
    order_.pop_front();
    if (failed_.contains(owner)) return RenewalAnswer::failed;
    return extended_.contains(owner) ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
  }

  std::string failure() const override { return failure_; }

 private:
  struct Batch {
    std::vector<std::string> keys, owners;
    std::vector<std::int64_t> ttls;
  };

  const Duration timeout_;
  Session session_;
  std::map<std::string, Batch> queued_;  ///< by schema
  std::deque<std::string> order_;        ///< owners, as asked
  std::set<std::string, std::less<>> extended_, failed_;
  std::string failure_;
};

/// A row per key with its owner and the end of the lease, by the database's clock.
class LeaseLock : public LockStrategy {
 public:
  explicit LeaseLock(const Context& context)
      : env_(context.env),
        services_(context.services),
        options_(context.options),
        waiting_(context.waiting),
        renewing_(context.renewing),
        url_(context.urls.empty() ? "" : context.urls.front()),
        endpoint_(endpoints_of(context, parse_endpoint).front()),
        session_(endpoint_, context.options.timeouts(), env_) {}

  StoreResult<void> connect() override { return session_.connect(); }

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = retry_with_token(
        request, env_, waiting_,
        [&](const AcquireRequest& once, Lease& lease) { return insert_or_take(once, lease); },
        [&](const Lease& lease, const std::stop_token& stop) {
          return change(free_row, lease, Duration::zero(), stop);
        });
    if (result.lease && renewing_) keep_renewed(*result.lease, request.ttl);
    return result;
  }

  ReleaseResult release(const Lease& lease) override {
    if (lease.renewal) lease.renewal->stop();
    return to_release_result(change(free_row, lease, options_.lock_at_least, {}));
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env_.now();
    return to_renew_result(change(extend_row, lease, ttl, {}), lease, env_, asked_at,
                           std::chrono::milliseconds(ceil_milliseconds(ttl)));
  }

 private:
  StoreResult<bool> insert_or_take(const AcquireRequest& request, Lease& lease) {
    const TimePoint asked_at = env_.now();
    auto granted = change(take_row, lease, request.ttl, request.stop);
    if (granted && *granted) {
      const std::chrono::milliseconds valid(ceil_milliseconds(request.ttl));
      lease.state = std::make_shared<LeaseState>(asked_at + valid, asked_at);
    }
    return granted;
  }

  /// Whether the lease's row was changed. A row that stays locked for the command timeout counts as
  /// taken; a release or renewal by its holder then fails.
  StoreResult<bool> change(Statement (*statement)(const std::string&), const Lease& lease,
                           Duration time, const std::stop_token& stop) {
    const auto answer = call_once(session_, statement, schema_of_key(lease.key), lease.key,
                                  {lease.key, lease.token, std::to_string(ceil_milliseconds(time))},
                                  options_.command_timeout, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!answer->done()) {
      if (statement == take_row) return false;
      return failure_at(session_.display(), StoreError::Kind::rejected,
                        "the row stayed locked too long");
    }
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return answer->rows == 1;
  }

  void keep_renewed(Lease& lease, Duration ttl) {
    RenewalScheduler& scheduler = renewal_scheduler(services_);
    const Duration timeout = renewal_timeout(ttl / 3, options_.command_timeout);
    const std::string channel = fmt::format("{} lease {}", url_, timeout.count());
    scheduler.provide_channel(channel, [&](Env& env) {
      return std::make_unique<LeaseRenewals>(endpoint_, timeout, env);
    });
    lease.renewal = scheduler.keep({.key = lease.key,
                                    .token = lease.token,
                                    .state = lease.state,
                                    .granted_at = lease.state->confirmed_at(),
                                    .ttl = ttl,
                                    .timing = *renewing_,
                                    .cap = options_.renew_cap,
                                    .channels = {channel}});
  }

  Env& env_;
  Services& services_;
  const StrategyOptions options_;
  const WaitPolicy waiting_;
  const std::optional<RenewalTiming> renewing_;
  const std::string url_;  ///< with secrets
  const Endpoint endpoint_;
  Session session_;
};

const Registration postgres_lease(with_known_hazards({
    .name = "postgres-lease",
    .backend = "postgres",
    .summary = "A row per key with owner and lock_until, by the database's clock",
    .acquire_commands = {"INSERT key, owner, lock_until ON CONFLICT DO UPDATE WHERE lock_until <= "
                         "clock_timestamp()"},
    .release_commands = {"UPDATE lock_until WHERE key AND owner"},
    .source = "lease tables as in ShedLock (lock_until, locked_at, lockAtLeastFor, renewed by its "
              "KeepAliveLockProvider) and pglock (heartbeats), here with an owner for each grant",
    .typical = true,
    .libraries = {{"Java",
                   "ShedLock JdbcTemplateLockProvider (with usingDbTime; its owner is the host)",
                   "lockAtMostFor = {ttl}, lockAtLeastFor; renewed: KeepAliveLockProvider"},
                  {"Go", "cirello.io/pglock", "WithLeaseDuration({ttl}), WithHeartbeatFrequency"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renewable = true},
    .make = construct<LeaseLock>,
}));

}  // namespace
}  // namespace lockbench::postgres
