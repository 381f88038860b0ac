#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "strategies/number.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/client/session.h"
#include "watch/sources/sql_watch.h"

namespace lockbench::watch {
namespace {

using nlohmann::json;

/// Whether we may read tables, for find_tables.
constexpr std::string_view kFindTables = R"(
SELECT coalesce(json_agg(json_build_array(n.nspname || '.' || t.relname,
  format('%I.%I', n.nspname, t.relname),
  has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(t.oid, 'SELECT')
    OR has_any_column_privilege(t.oid, 'SELECT')), 'locked_at' = ANY (c.names))), '[]')::text
FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
  JOIN LATERAL (SELECT array_agg(a.attname::text) AS names FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped) AS c ON true
WHERE t.relkind IN ('r', 'p', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND t.oid IN (SELECT attrelid FROM pg_catalog.pg_attribute WHERE attname = 'lock_until'
    AND NOT attisdropped LIMIT 20) AND c.names @> '{name,lock_until,locked_by}')";

/// Locks are named by the arguments of pg_advisory_lock: "advisory:42", "advisory:1,2". `version`
/// is the server's (140002: 14.2).
std::string advisory_locks(std::uint64_t version) {
  constexpr std::uint64_t kTellsWaits = 140'000;
  // Our own session takes no such locks, but behind a transaction pooler it may have one of another
  // client, for ever if that forgot it.
  return fmt::format(
      R"(SELECT coalesce(json_agg(json_build_array('advisory:' || CASE l.objsubid
    WHEN 1 THEN ((l.c << 32) | l.o)::text ELSE concat((l.c << 32) >> 32, ',', (l.o << 32) >> 32) END,
  coalesce('process ' || l.pid, 'prepared transaction'), l.mode = 'ShareLock', l.granted,
  extract(epoch FROM clock_timestamp() - l.began)::float8,
  CASE WHEN a.state LIKE 'idle%' THEN extract(epoch FROM clock_timestamp() - a.state_change)::float8 END,
  nullif(concat_ws(', ', nullif(left(a.application_name, 64), ''), host(a.client_addr)), ''))), '[]')::text
FROM (SELECT classid::bigint AS c, objid::bigint AS o, objsubid, pid, mode, granted, {} AS began
  FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND database =
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) LIMIT {}) AS l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid)",
      version >= kTellsWaits ? "waitstart" : "NULL::timestamptz", kMostLocks + 1);
}

std::string rows_in_postgres(const SqlTable& table) {
  // extract() reads a timestamp without time zone as UTC.
  return fmt::format(
      "coalesce((SELECT json_agg(json_build_array(left(l.name::text, 256), "
      "left(l.locked_by::text, 128), (extract(epoch FROM l.lock_until) - c.t)::float8, {})) "
      "FROM (SELECT * FROM {} WHERE extract(epoch FROM lock_until) > "
      "extract(epoch FROM clock_timestamp()) - {} LIMIT {}) AS l, "
      "(SELECT extract(epoch FROM clock_timestamp()) AS t) AS c), '[]')",
      table.has_locked_at ? "(c.t - extract(epoch FROM l.locked_at))::float8" : "NULL", table.sql,
      kRemembered, kMostTableRows + 1);
}

class PostgresWatch : public SqlWatch {
 public:
  PostgresWatch(const postgres::Endpoint& endpoint, const Watching& watching) : SqlWatch(watching) {
    session_ = std::make_unique<postgres::Session>(endpoint, request_.command_timeout, env_);
    // SET LOCAL, as a transaction pooler would pass session settings on to other clients. A short
    // lock_timeout, so that nobody queues behind us for long.
    how_ = sql::Statement::How::script;
    before_ = fmt::format(
        "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = 50;",
        std::max<std::int64_t>(ceil_milliseconds(longest()), 1));
  }

  void begin() {
    const auto said = ask("the session's rights",
                          "SELECT json_build_array(current_setting('server_version_num'), "
                          "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') OR (SELECT "
                          "rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), "
                          "current_database())::text");
    const json facts = json::parse(*said, nullptr, false);
    const bool fits = facts.is_array() && facts.size() == 3 && facts[0].is_string() &&
                      facts[1].is_boolean() && facts[2].is_string();
    const auto version =
        fits ? parse_number<std::uint64_t>(facts[0].get<std::string>()) : std::nullopt;
    if (!version) misread("its version cannot be read");
    locks_ = advisory_locks(*version);
    locks_in_ = "pg_locks";
    facts_.store = "postgres";
    facts_.waiters = "sessions that wait, in pg_locks";
    facts_.unseen = {
        "locks of rows and tables: pg_locks and pg_blocking_pids() show who waits for them",
        fmt::format("locks of other databases than {}", facts[2].get<std::string>())};
    if (!facts[1].get<bool>()) {
      facts_.unseen.emplace_back(
          "since when the locks found at the first look are held: the role is no member of "
          "pg_read_all_stats or pg_monitor");
    }
    if (*version < 140'000) {
      facts_.unseen.emplace_back("since when sessions wait: needs PostgreSQL 14");
    }
    find_tables(kFindTables, rows_in_postgres);
  }
};

}  // namespace

Made make_postgres_source(const std::string& url, const Request& request) {
  return one_server<PostgresWatch>(url, request, postgres::parse_endpoint);
}

}  // namespace lockbench::watch
