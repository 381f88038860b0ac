#include <fmt/format.h>
#include <libpq-fe.h>

#include "strategies/carrier.h"
#include "strategies/postgres/client/endpoint.h"
#include "tests/conformance/postgres/postgres_test_store.h"

namespace lockbench::test {

void PostgresProbe::Finish::operator()(pg_conn* connection) const { PQfinish(connection); }

PostgresProbe::PostgresProbe(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

std::vector<std::string> PostgresProbe::ask(const std::string& sql,
                                            const std::vector<std::string>& values) {
  std::vector<const char*> raw;
  raw.reserve(values.size());
  for (const std::string& value : values) raw.push_back(value.c_str());
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
      PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(raw.size()), nullptr,
                   raw.data(), nullptr, nullptr, 0),
      PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection_.get()));
  }
  std::vector<std::string> cells;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      cells.emplace_back(PQgetvalue(result.get(), row, column));
    }
  }
  return cells;
}

namespace {

bool has_schema(PostgresProbe& probe) {
  return !probe.ask("SELECT 1 FROM pg_namespace WHERE nspname = $1", {kSchema}).empty();
}

}  // namespace

PostgresTestStore::PostgresTestStore() : SqlTestStore(testbed::start_postgres(shared_testbed())) {}

void PostgresTestStore::clear() {
  PostgresProbe look = probe();
  // End sessions left by earlier checks, each within a bounded time.
  look.ask(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
      "WHERE application_name LIKE 'lockbench%'");
  look.ask(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", kSchema));
}

std::vector<std::string> PostgresTestStore::keys() {
  PostgresProbe look = probe();
  std::vector<std::string> keys;
  // Advisory numbers do not show their keys, so try the keys that a check uses.
  const std::string key = "lockbench:conformance:{lock}";
  const std::string number = std::to_string(postgres::advisory_number(key));
  for (const std::string& held :
       look.ask("SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks "
                "WHERE locktype = 'advisory' AND objsubid = 1")) {
    keys.push_back(held == number ? key : "advisory:" + held);
  }
  if (!has_schema(look)) return keys;
  for (const std::string& row :
       look.ask(fmt::format("SELECT key FROM {0}.lock_row EXCEPT SELECT * FROM "
                            "(SELECT key FROM {0}.lock_row FOR UPDATE SKIP LOCKED) AS free",
                            kSchema))) {
    keys.push_back(row);
  }
  for (const std::string& row :
       look.ask(fmt::format("SELECT key FROM {}.lease WHERE owner IS NOT NULL", kSchema))) {
    keys.push_back(row);
  }
  for (const std::string& row : look.ask(fmt::format(
           "SELECT key FROM {}.observed_lease WHERE record::json->>'holderIdentity' <> ''",
           kSchema))) {
    keys.push_back(row);
  }
  return keys;
}

std::optional<TimePoint> PostgresTestStore::end_of(const std::string& key) {
  PostgresProbe look = probe();
  const auto left = look.ask(
      fmt::format("SELECT extract(epoch FROM lock_until - clock_timestamp()) FROM {}.lease "
                  "WHERE key = $1 AND owner IS NOT NULL",
                  kSchema),
      {key});
  if (left.empty()) {
    const auto records = look.ask(
        fmt::format("SELECT record FROM {}.observed_lease WHERE key = $1", kSchema), {key});
    return records.empty() ? std::nullopt : end_of_record(records.front());
  }
  return Carrier::current().now() +
         std::chrono::microseconds(static_cast<std::int64_t>(std::stod(left.front()) * 1e6));
}

void PostgresTestStore::take_away(const std::vector<std::string>& keys) {
  PostgresProbe look = probe();
  for (const std::string& key : keys) {
    for (const char* table : {"lease", "observed_lease"}) {
      look.ask(fmt::format("DELETE FROM {}.{} WHERE key = $1", kSchema, table), {key});
    }
  }
  // All of them are found before the first one ends, and a waiter is granted its lock.
  look.ask(
      "SELECT pg_terminate_backend(pid, 5000) FROM unnest(ARRAY(SELECT pid FROM pg_stat_activity "
      "WHERE application_name LIKE 'lockbench%' AND (state LIKE 'idle in transaction%' OR pid IN "
      "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)))) AS pid");
}

namespace {

int sessions(PostgresProbe probe, const std::string& condition) {
  return std::stoi(probe
                       .ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                            "'lockbench%'" +
                            condition)
                       .front());
}

}  // namespace

int PostgresTestStore::other_connections() { return sessions(probe(), ""); }

int PostgresTestStore::waiting() { return sessions(probe(), " AND wait_event_type = 'Lock'"); }

PostgresTestStore& shared_postgres() { return dynamic_cast<PostgresTestStore&>(shared_store()); }

namespace {

const TestedStoreRegistration registration({.name = "postgres",
                                            .backends = {"postgres"},
                                            .shared = the_one<PostgresTestStore>,
                                            .make = another<PostgresTestStore>});

}  // namespace

}  // namespace lockbench::test
