#include <fmt/format.h>

#include "strategies/observed_lease.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

// As for postgres-lease: a transaction pooler may give each statement to another session. $1: the
// key; the last parameter: lock_timeout.

Statement read_record(const std::string& schema) {
  return {.name = "SELECT",
          .sql = fmt::format("SELECT l.record FROM set_config('lock_timeout', $2, true), "
                             "{}.observed_lease AS l WHERE l.key = $1",
                             schema),
          .how = Statement::How::once,
          .answered = "SELECT"};
}

/// $2: the new record, $3: the one that was read; empty: there was none.
Statement write_record(const std::string& schema) {
  return {.name = "INSERT",
          .sql = fmt::format(
              "INSERT INTO {0}.observed_lease AS l (key, record) SELECT $1::text, $2::text "
              "FROM set_config('lock_timeout', $4, true) WHERE $3::text = '' "
              "OR EXISTS (SELECT 1 FROM {0}.observed_lease WHERE key = $1::text) "
              "ON CONFLICT (key) DO UPDATE SET record = $2 WHERE l.record = $3",
              schema),
          .how = Statement::How::once,
          .answered = "INSERT"};
}

/// Rows whose version is their record: no two writes of a lease write the same.
class Rows : public VersionedStore {
 public:
  Rows(const Endpoint& endpoint, const Timeouts& timeouts, Env& env)
      : timeout_(timeouts), session_(endpoint, timeouts, env) {}

  StoreResult<void> connect() override { return session_.connect(); }
  const std::string& display() const override { return session_.display(); }

  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override {
    const auto answer = call(read_record, key, {key}, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (answer->rows == 0) return std::nullopt;
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return VersionedItem{answer->value, answer->value};
  }

  /// Without a TTL: the form that it is used for does not expire.
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override {
    const std::string old = put.over == nullptr ? "" : put.over->version;
    const auto answer =
        call(write_record, put.key, {std::string(put.key), std::string(put.value), old}, stop);
    if (!answer) return tl::unexpected(answer.error());
    if (answer->rows > 1) return session_.not_understood("one row at most", *answer);
    return answer->rows == 1;
  }

 private:
  StoreResult<Answer> call(Statement (*statement)(const std::string&), std::string_view key,
                           std::vector<std::string> parameters, const std::stop_token& stop) {
    parameters.push_back(std::to_string(ceil_milliseconds(timeout_)));
    const std::string schema = schema_of_key(key);
    auto answer = sql::call_alone(session_, statement(schema), schema, key, parameters, stop);
    if (!answer || answer->done()) return answer;
    return session_.stayed_locked();
  }

  const Duration timeout_;
  Session session_;
};

const Registration postgres_observed_lease(observed(
    {.name = "postgres-observed-lease",
     .backend = "postgres",
     .summary = "A record in a row: taken over after a TTL without a change, by the "
                "candidate's own clock",
     .source = "client-go's leaderelection and cirello.io/pglock, on a row",
     .libraries = {{"Go", "cirello.io/pglock", "WithLeaseDuration({ttl}), WithHeartbeatFrequency",
                    Reentry::none, true}},
     .make = make_lease_on<ObservedLease, Rows, parse_endpoint>},
    {"SELECT record", "INSERT record ON CONFLICT DO UPDATE WHERE record = $old"}));

}  // namespace
}  // namespace lockbench::postgres
