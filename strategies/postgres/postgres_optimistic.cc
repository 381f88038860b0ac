#include <fmt/format.h>

#include "strategies/number.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"
#include "strategies/url.h"
#include "strategies/waiting/retry.h"

namespace lockbench::postgres {
namespace {

/// A number in a row with a version, which is read, and written if the version is the same. Each
/// statement is a transaction, so that a pooler may be in between.
class Optimistic : public LockStrategy {
 public:
  explicit Optimistic(const Context& context)
      : env_(context.env),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env_) {}

  StoreResult<void> connect() override { return session_.connect(); }

  AcquireResult acquire(const AcquireRequest& request) override {
    auto lease = read(request);
    if (!lease) {
      return {.outcome = outcome_of(lease.error(), request.stop),
              .attempts = 1,
              .reason = std::move(lease.error().message)};
    }
    return {.outcome = AcquireOutcome::acquired, .lease = *std::move(lease), .attempts = 1};
  }

  ReleaseResult release(const Lease& lease) override {
    const std::string next = std::to_string(lease.fencing.value_or(0) + 1);
    const bool first = lease.token.empty();
    const auto written =
        first ? ask("INSERT",
                    "INSERT INTO {}.counted (key, version, value) "
                    "VALUES ($1, 1, $2::bigint) ON CONFLICT DO NOTHING",
                    lease.key, {lease.key, next}, {})
              : ask("UPDATE",
                    "UPDATE {}.counted SET version = version + 1, value = $2::bigint "
                    "WHERE key = $1 AND version = $3::bigint",
                    lease.key, {lease.key, next, lease.token}, {});
    // With a stricter isolation than the default, changes by others are errors.
    return to_release_result(
        written.map([](const Answer& answer) { return answer.done() && answer.rows == 1; }));
  }

 private:
  /// The lease's token is the version; empty: there is no row.
  StoreResult<Lease> read(const AcquireRequest& request) {
    Lease lease{.key = std::string(request.key),
                .mode = request.mode,
                .fencing = 0,
                .state = std::make_shared<LeaseState>(TimePoint::max())};
    const auto seen = before_request(
        ask("SELECT", "SELECT version || ' ' || value FROM {}.counted WHERE key = $1", request.key,
            {lease.key}, request.stop));
    if (!seen) return tl::unexpected(seen.error());
    if (!seen->done() || seen->rows == 0) return lease;
    std::string_view version = seen->value;
    lease.fencing = parse_number<std::uint64_t>(cut_at(version, ' '));
    lease.token = version;
    if (!lease.fencing) {
      return before_request<Lease>(session_.not_understood("two numbers", *seen));
    }
    return lease;
  }

  using Sql = fmt::format_string<const std::string&>;
  StoreResult<Answer> ask(std::string_view name, Sql sql, std::string_view key,
                          const std::vector<std::string>& parameters, const std::stop_token& stop) {
    const std::string schema = schema_of_key(key);
    return sql::call_alone(session_,
                           {.name = name,
                            .sql = fmt::format(sql, schema),
                            .how = Statement::How::once,
                            .answered = name},
                           schema, key, parameters, stop);
  }

  Env& env_;
  Session session_;
};

const Registration postgres_optimistic(with_known_hazards({
    .name = "postgres-optimistic",
    .backend = "postgres",
    .summary = "No lock: writes the row if its version is as it was read, or does the work again",
    .acquire_commands = {"SELECT version, value WHERE key"},
    .release_commands = {"UPDATE value, version + 1 WHERE key AND version"},
    .source = "Kung and Robinson, \"On Optimistic Methods for Concurrency Control\"; the version "
              "column of JPA, Rails and SQLAlchemy",
    .traits = {.expiry = Expiry::none,
               .release_check = OwnerCheck::atomic,
               .promises_exclusion = false,
               .updates = true,
               .waiting_choices = {}},
    .make = construct<Optimistic>,
}));

}  // namespace
}  // namespace lockbench::postgres
