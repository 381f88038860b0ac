#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strategies/conditional_lease.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

/// By which leases end.
enum class Clock { database, clients };

/// Where a statement is carried out.
struct Place {
  std::string schema;
  std::string_view now;
};

// All statements name the schema and are not prepared: a transaction pooler may give each to
// another session. The database's time is clock_timestamp(): now() is the start of the transaction,
// which may lie before a wait for the row. $1: the key, $2: the owner's token, and as the last two
// for how long to wait for the row, and the client's time.
using MakeStatement = Statement (*)(const Place&);

Statement unprepared(std::string_view name, std::string sql, std::string_view answered) {
  return {.name = name, .sql = std::move(sql), .how = Statement::How::once, .answered = answered};
}

/// $3: the TTL in milliseconds.
Statement take_row(const Place& at) {
  return unprepared("INSERT",
                    fmt::format("INSERT INTO {0}.lease AS l (key, owner, locked_at, lock_until) "
                                "SELECT $1::text, $2::text, {1}, "
                                "{1} + $3::int * interval '1 millisecond' "
                                "FROM set_config('lock_timeout', $4, true) "
                                "ON CONFLICT (key) DO UPDATE SET owner = $2, locked_at = {1}, "
                                "lock_until = {1} + $3::int * interval '1 millisecond' "
                                "WHERE l.lock_until <= {1}",
                                at.schema, at.now),
                    "INSERT");
}

/// $3: for how many milliseconds from its grant the lock stays taken.
Statement free_row(const Place& at) {
  return unprepared(
      "UPDATE",
      fmt::format("UPDATE {0}.lease SET owner = NULL, lock_until = "
                  "greatest({1}, locked_at + $3::int * interval '1 millisecond') "
                  "FROM set_config('lock_timeout', $4, true) WHERE key = $1 AND owner = $2",
                  at.schema, at.now),
      "UPDATE");
}

/// $3: the TTL in milliseconds.
Statement extend_row(const Place& at) {
  return unprepared("UPDATE",
                    fmt::format("UPDATE {0}.lease SET lock_until = {1} + "
                                "$3::int * interval '1 millisecond' "
                                "FROM set_config('lock_timeout', $4, true) "
                                "WHERE key = $1 AND owner = $2",
                                at.schema, at.now),
                    "UPDATE");
}

/// The same for many: $1 to $3 are arrays. Answers with the owners of those that were extended.
Statement extend_rows(const Place& at) {
  return unprepared(
      "UPDATE",
      fmt::format("WITH extended AS (UPDATE {0}.lease AS l SET lock_until = {1} + "
                  "asked.ttl * interval '1 millisecond' "
                  "FROM unnest($1::text[], $2::text[], $3::int[]) "
                  "AS asked (key, owner, ttl), set_config('lock_timeout', $4, true) "
                  "WHERE l.key = asked.key AND l.owner = asked.owner RETURNING l.owner) "
                  "SELECT string_agg(owner, ' ') FROM extended",
                  at.schema, at.now),
      "SELECT");
}

Statement take_for_good(const Place& at) {
  return unprepared(
      "INSERT",
      fmt::format("INSERT INTO {}.lease (key, owner, locked_at, lock_until) "
                  "SELECT $1::text, $2::text, clock_timestamp(), 'infinity'::timestamptz "
                  "FROM set_config('lock_timeout', $3, true) ON CONFLICT DO NOTHING",
                  at.schema),
      "INSERT");
}

Statement drop_row(const Place& at) {
  return unprepared("DELETE",
                    fmt::format("DELETE FROM {}.lease USING set_config('lock_timeout', $3, true) "
                                "WHERE key = $1 AND owner = $2",
                                at.schema),
                    "DELETE");
}

/// A session with or without a pooler, and the clock by which its leases end.
struct Table {
  Session& session;
  Env& env;
  Clock clock;
};

/// If another session has locked the row, the statement waits for at most `longest`.
StoreResult<Answer> call_at(const Table& table, MakeStatement statement, const std::string& schema,
                            std::string_view key, std::vector<std::string> parameters,
                            Duration longest, const std::stop_token& stop) {
  parameters.push_back(std::to_string(ceil_milliseconds(longest)));
  Place at{schema, "clock_timestamp()"};
  if (table.clock == Clock::clients) {
    const auto now = table.env.wall_now().time_since_epoch();
    at.now = "to_timestamp($5::bigint / 1e6)";
    parameters.push_back(
        std::to_string(std::chrono::floor<std::chrono::microseconds>(now).count()));
  }
  return sql::call_alone(table.session, statement(at), schema, key, parameters, stop);
}

/// Extends many leases with one statement for each schema, which is that of a run.
class LeaseRenewals : public RenewalChannel {
 public:
  LeaseRenewals(const Endpoint& endpoint, Duration timeout, Env& env, Clock clock)
      : timeout_(timeout), session_(endpoint, timeout, env), table_{session_, env, clock} {}

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
          call_at(table_, extend_rows, schema, {}, std::move(parameters), timeout_, stop);
      if (answer && answer->done()) {
        std::string_view owners = answer->value;
        while (!owners.empty()) {
          std::string_view rest = cut_at(owners, ' ');
          extended_.emplace(owners);
          owners = rest;
        }
      } else {
        failed_.insert(batch.owners.begin(), batch.owners.end());
        failure_ = (answer ? session_.stayed_locked().value() : answer.error()).message;
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
  const Table table_;
  std::map<std::string, Batch> queued_;  ///< by schema
  std::deque<std::string> order_;        ///< owners, as asked
  std::set<std::string, std::less<>> extended_, failed_;
  std::string failure_;
};

/// How a row is taken and given back.
struct Form {
  MakeStatement take, free;
  /// Nothing ends it but its owner.
  bool endless = false;
  Clock clock = Clock::database;
};

/// A row per key with its owner and the end of the lease.
class LeaseLock : public TimedLease {
 public:
  LeaseLock(const Context& context, const Form& chosen)
      : TimedLease(context),
        form_(chosen),
        endpoint_(endpoints_of(context, parse_endpoint).front()),
        session_(endpoint_, context.options.timeouts(), env()) {}

  StoreResult<void> connect() override { return session_.connect(); }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const bool can = !form_.endless || ttl <= Duration::zero();
    return can ? TimedLease::renew(lease, ttl) : RenewResult{RenewOutcome::unsupported, {}};
  }

 protected:
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override {
    const TimePoint asked_at = env().now();
    auto granted = change(form_.take, lease, request.ttl, request.stop);
    if (granted && *granted) {
      const std::chrono::milliseconds valid(ceil_milliseconds(request.ttl));
      lease.state = std::make_shared<LeaseState>(
          form_.endless ? TimePoint::max() : asked_at + valid, asked_at);
    }
    return granted;
  }
  StoreResult<bool> take_back(const Lease& lease, const std::stop_token& stop) override {
    return change(form_.free, lease, Duration::zero(), stop);
  }
  StoreResult<bool> give_back(const Lease& lease) override {
    return change(form_.free, lease, options().lock_at_least, {});
  }
  StoreResult<bool> extend(const Lease& lease, Duration ttl) override {
    return change(extend_row, lease, ttl, {});
  }
  std::string renewal_kind() const override {
    return form_.clock == Clock::clients ? "client clock" : "";
  }
  std::unique_ptr<RenewalChannel> make_renewals(Duration timeout, Env& env) const override {
    return std::make_unique<LeaseRenewals>(endpoint_, timeout, env, form_.clock);
  }

 private:
  /// Whether the lease's row was changed. A row that stays locked for the command timeout counts as
  /// taken; a release or renewal by its holder then fails.
  StoreResult<bool> change(MakeStatement statement, const Lease& lease, Duration time,
                           const std::stop_token& stop) {
    std::vector<std::string> parameters{lease.key, lease.token};
    if (!form_.endless) parameters.push_back(std::to_string(ceil_milliseconds(time)));
    const auto answer = call_at({session_, env(), form_.clock}, statement, schema_of_key(lease.key),
                                lease.key, std::move(parameters), options().command_timeout, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (!answer->done()) {
      if (statement == form_.take) return false;
      return session_.stayed_locked();
    }
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return answer->rows == 1;
  }

  const Form& form_;
  const Endpoint endpoint_;
  Session session_;
};

constexpr Form kByDatabase{take_row, free_row};
constexpr Form kByClients{take_row, free_row, false, Clock::clients};
constexpr Form kEndless{take_for_good, drop_row, true};

template <const Form& kForm>
std::unique_ptr<LockStrategy> make_lease(const Context& context) {
  return std::make_unique<LeaseLock>(context, kForm);
}

const Registration postgres_lease(with_known_hazards({
    .name = "postgres-lease",
    .backend = "postgres",
    .summary = "A row per key with owner and lock_until, by the database's clock",
    .acquire_commands = {"INSERT key, owner, lock_until ON CONFLICT DO UPDATE WHERE lock_until <= "
                         "clock_timestamp()"},
    .release_commands = {"UPDATE lock_until WHERE key AND owner"},
    .source = "lease tables as in ShedLock (lock_until, locked_at, lockAtLeastFor, renewed by its "
              "KeepAliveLockProvider), here with an owner for each grant",
    .typical = true,
    .libraries = {{"Java",
                   "ShedLock JdbcTemplateLockProvider (with usingDbTime; its owner is the host)",
                   "lockAtMostFor = {ttl}, lockAtLeastFor; renewed: KeepAliveLockProvider"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renewable = true},
    .make = make_lease<kByDatabase>,
}));

const Registration postgres_lease_client_clock(with_known_hazards({
    .name = "postgres-lease-client-clock",
    .backend = "postgres",
    .summary = "As postgres-lease, by the clients' clocks: one that is ahead takes the lock away",
    .acquire_commands = {"INSERT key, owner, now+ttl ON CONFLICT DO UPDATE WHERE lock_until <= "
                         "now"},
    .release_commands = {"UPDATE lock_until WHERE key AND owner"},
    .source = "ShedLock without usingDbTime (its issue 231), here with an owner for each grant",
    .superseded_by = "postgres-lease",
    .superseded_because = "it trusts the clocks of all clients",
    .libraries =
        {{"Java",
          "ShedLock JdbcTemplateLockProvider (without usingDbTime, its default; its owner is the "
          "host)",
          "lockAtMostFor = {ttl}, lockAtLeastFor; renewed: KeepAliveLockProvider"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .by_client_clocks = true,
               .renewable = true},
    .make = make_lease<kByClients>,
}));

const Registration postgres_table_lock(with_known_hazards({
    .name = "postgres-table-lock",
    .backend = "postgres",
    .summary = "A row per key with its owner and no TTL: a crashed holder blocks all clients for "
               "ever",
    .acquire_commands = {"INSERT key, owner ON CONFLICT DO NOTHING"},
    .release_commands = {"DELETE WHERE key AND owner"},
    .source = "lock tables as in Liquibase (DATABASECHANGELOGLOCK; spinnaker issue 6625), here "
              "with a row and an owner for each grant",
    .superseded_by = "postgres-lease",
    .superseded_because = "it never expires: a crash leaves it locked",
    .libraries = {{"Java", "Liquibase StandardLockService", "DATABASECHANGELOGLOCK", Reentry::none,
                   true}},
    .traits = {.expiry = Expiry::none, .release_check = OwnerCheck::atomic},
    .make = make_lease<kEndless>,
}));

}  // namespace
}  // namespace lockbench::postgres
