#include <fmt/format.h>

#include "strategies/mysql/client/endpoint.h"
#include "strategies/mysql/client/session.h"
#include "watch/sources/sql_watch.h"

namespace lockbench::watch {
namespace {

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

/// A lock's name is one of the two parts of its key at the server; the other is empty. The plugin
/// shows holders only, but it can be installed while the server runs, unlike performance_schema.
std::string named_locks() {
  return list_of(
      "l.name, CONCAT('connection ', l.id), 0, 1, NULL, IF(p.COMMAND = 'Sleep', p.TIME_MS / 1000, "
      "NULL), CONCAT(p.USER, '@', p.HOST)",
      fmt::format("FROM (SELECT CONCAT(TABLE_SCHEMA, TABLE_NAME) AS name, THREAD_ID AS id "
                  "FROM information_schema.METADATA_LOCK_INFO WHERE LOCK_TYPE = 'User lock' "
                  "LIMIT {}) AS l LEFT JOIN information_schema.PROCESSLIST p ON p.ID = l.id",
                  kMostLocks + 1));
}

std::string rows_in_mysql(const SqlTable& table) {
  // As ShedLock writes UTC_TIMESTAMP(). A DATETIME is read as it was written; a TIMESTAMP only if
  // our session has the time zone of ShedLock's.
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
        "who waits for a named lock",
        "locks of rows and tables: information_schema.INNODB_LOCK_WAITS shows who waits for them",
        "without the right PROCESS: users, addresses and idle times of other users' sessions",
        "lock tables on which the user has no right at all"};
    find_tables(list_of("CONCAT(s, '.', t), CONCAT('`', REPLACE(s, '`', '``'), '`.`', REPLACE(t, "
                        "'`', '``'), '`'), r, d",
                        kTablesWithRights),
                rows_in_mysql);
    std::string not_installed;
    if (ask("named locks", named_locks(), &not_installed)) {
      locks_ = named_locks();
      locks_in_ = "information_schema.METADATA_LOCK_INFO";
      return;
    }
    const std::string how = fmt::format(
        "named locks (GET_LOCK): INSTALL SONAME 'metadata_lock_info' ({})", not_installed);
    if (tables_.empty()) misread("it does not show " + how);
    facts_.unseen.push_back(how);
  }
};

}  // namespace

Made make_mysql_source(const std::string& url, const Request& request) {
  return one_server<MysqlWatch>(url, request, mysql::parse_endpoint);
}

}  // namespace lockbench::watch
