#include <fmt/format.h>

#include "strategies/mysql/client/endpoint.h"
#include "strategies/mysql/client/session.h"
#include "watch/sources/sql_watch.h"

namespace lockbench::watch {
namespace {

constexpr std::string_view kToSwitchOn =
    "start the server with performance_schema=ON and "
    "performance-schema-instrument='wait/lock/metadata/sql/mdl=ON', and grant SELECT on "
    "performance_schema.*; or INSTALL SONAME 'metadata_lock_info'";
constexpr std::string_view kInstrument = R"(
SELECT IF(@@performance_schema, (SELECT CONCAT(ENABLED) FROM performance_schema.setup_instruments
  WHERE NAME = 'wait/lock/metadata/sql/mdl'), 'NO'))";
/// A lock's name is one of the two parts of its key at the server; the other is empty.
constexpr std::string_view kInPerformanceSchema = R"(
SELECT CONCAT(IFNULL(m.OBJECT_SCHEMA, ''), IFNULL(m.OBJECT_NAME, '')) AS name,
  t.PROCESSLIST_ID AS id, IF(m.LOCK_STATUS = 'GRANTED', 1, 0) AS granted
FROM performance_schema.metadata_locks m
  JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
WHERE m.OBJECT_TYPE = 'USER LEVEL LOCK' AND m.LOCK_STATUS IN ('GRANTED', 'PENDING'))";
constexpr std::string_view kByPlugin = R"(
SELECT CONCAT(TABLE_SCHEMA, TABLE_NAME) AS name, THREAD_ID AS id, 1 AS granted
FROM information_schema.METADATA_LOCK_INFO WHERE LOCK_TYPE = 'User lock')";
/// On which the user has any right.
constexpr std::string_view kTablesWithRights = R"(
FROM (SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t,
    MIN(IF(FIND_IN_SET('select', PRIVILEGES) > 0, 1, 0)) AS r,
    MAX(IF(COLUMN_NAME = 'locked_at', 1, 0)) AS d
  FROM information_schema.COLUMNS
  WHERE COLUMN_NAME IN ('name', 'lock_until', 'locked_by', 'locked_at')
    AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
  GROUP BY TABLE_SCHEMA, TABLE_NAME
  HAVING SUM(IF(COLUMN_NAME = 'locked_at', 0, 1)) = 3 LIMIT 20) AS c)";

/// A SELECT for the list of these arrays, which the connection's character set does not change.
/// JSON_ARRAYAGG has had faults in joins.
std::string list_of(std::string_view array, std::string_view from) {
  return fmt::format(
      "SELECT CAST(CONCAT('[', IFNULL(GROUP_CONCAT(JSON_ARRAY({})), ''), ']') AS BINARY) {}", array,
      from);
}

std::string named_locks(std::string_view shown_by) {
  return list_of(
      "l.name, CONCAT('connection ', l.id), 0, l.granted, IF(l.granted = 1, NULL, p.TIME_MS / "
      "1000), IF(p.COMMAND = 'Sleep', p.TIME_MS / 1000, NULL), CONCAT(p.USER, '@', p.HOST)",
      fmt::format(
          "FROM ({} LIMIT {}) AS l LEFT JOIN information_schema.PROCESSLIST p ON p.ID = l.id",
          shown_by, kMostLocks + 1));
}

std::string rows_in_mysql(const SqlTable& table) {
  // As ShedLock writes UTC_TIMESTAMP(), whatever the time zones of its sessions and the column.
  constexpr std::string_view kHeld =
      "TIMESTAMPDIFF(MICROSECOND, l.locked_at, UTC_TIMESTAMP(6)) / 1000000";
  return fmt::format(
      "({})",
      list_of(fmt::format("LEFT(CONVERT(l.name USING utf8mb4), 256), LEFT(CONVERT(l.locked_by "
                          "USING utf8mb4), 128), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), "
                          "l.lock_until) / 1000000, {}",
                          table.has_locked_at ? kHeld : "NULL"),
              fmt::format("FROM (SELECT name, locked_by, lock_until{} FROM {} WHERE lock_until > "
                          "UTC_TIMESTAMP(6) - INTERVAL {} SECOND LIMIT {}) AS l",
                          table.has_locked_at ? ", locked_at" : "", table.sql, kRemembered,
                          kMostTableRows + 1)));
}

class MysqlWatch : public SqlWatch {
 public:
  MysqlWatch(const mysql::Endpoint& endpoint, const Watching& watching) : SqlWatch(watching) {
    session_ = std::make_unique<mysql::Session>(endpoint, request_.command_timeout, env_);
    before_ = fmt::format(
        "SET STATEMENT max_statement_time = {:.3f}, lock_wait_timeout = 0, group_concat_max_len = "
        "1000000 FOR",
        std::max(seconds(longest()), 0.001));
  }

  void begin() {
    facts_.store = "mysql";
    facts_.unseen = {
        "locks of rows and tables: information_schema.INNODB_LOCK_WAITS shows who waits for them",
        "lock tables on which the user has no right at all"};
    find_tables(list_of("CONCAT(s, '.', t), CONCAT('`', REPLACE(s, '`', '``'), '`.`', REPLACE(t, "
                        "'`', '``'), '`'), r, d",
                        kTablesWithRights),
                rows_in_mysql);
    std::string why_no_sessions;
    // Takes the right to see the sessions of all users.
    if (!ask("the session's rights", "SELECT COUNT(*) FROM information_schema.INNODB_CMP",
             &why_no_sessions)) {
      facts_.unseen.push_back("the sessions of other users, and since when they hold or wait: " +
                              why_no_sessions);
    }
    find_locks();
  }

 private:
  void find_locks() {
    std::string denied, not_installed;
    if (ask("the instrument of locks", kInstrument, &denied) == "YES") {
      locks_ = named_locks(kInPerformanceSchema);
      locks_in_ = "performance_schema.metadata_locks";
      facts_.waiters = "sessions that wait, in metadata_locks";
      return;
    }
    if (ask("the plugin for locks", named_locks(kByPlugin), &not_installed)) {
      locks_ = named_locks(kByPlugin);
      locks_in_ = "information_schema.METADATA_LOCK_INFO";
      facts_.unseen.emplace_back("who waits for a named lock: performance_schema shows it");
      return;
    }
    const std::string how = fmt::format("named locks (GET_LOCK): {} ({})", kToSwitchOn,
                                        denied.empty() ? not_installed : denied);
    if (tables_.empty()) misread("it does not show " + how);
    facts_.unseen.push_back(how);
  }
};

}  // namespace

Made make_mysql_source(const std::string& url, const Request& request) {
  return one_server<MysqlWatch>(url, request, mysql::parse_endpoint);
}

}  // namespace lockbench::watch
