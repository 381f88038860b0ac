#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/number.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/client/session.h"
#include "watch/sources/postgres_locks.h"
#include "watch/sources/sql_watch.h"

namespace lockbench::watch {
namespace {

using nlohmann::json;

/// Tables with ShedLock's columns, whether we may read them, and whether they have locked_at.
constexpr std::string_view kFindTables = R"(
SELECT coalesce(json_agg(json_build_array(n.nspname, t.relname,
  has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(t.oid, 'SELECT')
    OR has_any_column_privilege(t.oid, 'SELECT')), 'locked_at' = ANY (c.names))), '[]')::text
FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
  JOIN LATERAL (SELECT array_agg(a.attname::text) AS names FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped) AS c ON true
WHERE t.relkind IN ('r', 'p', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND t.oid IN (SELECT attrelid FROM pg_catalog.pg_attribute WHERE attname = 'lock_until'
    AND NOT attisdropped LIMIT 20) AND c.names @> '{name,lock_until,locked_by}')";

class PostgresWatch final : public SqlWatch {
 public:
  PostgresWatch(const postgres::Endpoint& endpoint, const Watching& watching)
      : SqlWatch(watching), session_(endpoint, request_.command_timeout, env_) {
    locks_in_ = "pg_locks";
  }

  void begin() {
    const std::string said =
        ask("the session's rights",
            "SELECT json_build_array(current_setting('server_version_num'), "
            "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') OR (SELECT "
            "rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), "
            "current_database())::text");
    const json facts = json::parse(said, nullptr, false);
    const bool fits = facts.is_array() && facts.size() == 3 && facts[0].is_string() &&
                      facts[1].is_boolean() && facts[2].is_string();
    const auto version =
        fits ? parse_number<std::uint64_t>(facts[0].get<std::string>()) : std::nullopt;
    if (!version) misread("its version cannot be read");
    version_ = *version;
    sees_sessions_ = facts[1].get<bool>();
    database_ = facts[2].get<std::string>();
    find_tables(std::string(kFindTables));
  }

 private:
  sql::Session& session() override { return session_; }

  sql::Statement reading(std::string_view name, const std::string& select,
                         std::int64_t milliseconds) const override {
    // SET LOCAL, as a transaction pooler would pass session settings on to other clients. A short
    // lock_timeout, so that nobody queues behind us for long.
    return {.name = name,
            .sql = fmt::format("SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}; "
                               "SET LOCAL lock_timeout = 50; {}",
                               milliseconds, select),
            .how = sql::Statement::How::script,
            .answered = "SELECT"};
  }
  std::string lock_look() const override { return watch::lock_look(version_); }
  tl::expected<SqlLook, std::string> read_lock_look(std::string_view text) const override {
    return read_look(text);
  }
  std::string table_look() const override { return watch::table_look(tables_); }

  void describe(SourceFacts& facts) const override {
    facts.store = "postgres";
    facts.waiters = "sessions that wait, in pg_locks";
    auto& unseen = facts.unseen;
    unseen.insert(
        unseen.end(),
        {"locks of rows and tables: pg_locks and pg_blocking_pids() show who waits for them",
         fmt::format("locks of other databases than {}", database_),
         "whether an advisory lock was released or its session ended",
         "behind a transaction pooler: which client has a lock; a lock there belongs to the "
         "pooler's session"});
    if (!sees_sessions_) {
      unseen.emplace_back(
          "since when the locks found at the first look are held: the role is no member of "
          "pg_read_all_stats or pg_monitor");
    }
    if (version_ < 140'000) unseen.emplace_back("since when sessions wait: needs PostgreSQL 14");
    for (const SqlTable& table : tables_) {
      unseen.push_back(
          fmt::format("the time zone of {} if its column lock_until has none: it is read as UTC",
                      table.display()));
    }
  }

  postgres::Session session_;
  std::uint64_t version_ = 0;
  bool sees_sessions_ = false;
  std::string database_;
};

}  // namespace

Made make_postgres_source(const std::string& url, const Request& request) {
  return one_server<PostgresWatch>(url, request, postgres::parse_endpoint);
}

}  // namespace lockbench::watch
