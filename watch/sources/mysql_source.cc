#include <fmt/format.h>

#include <algorithm>

#include "strategies/mysql/client/session.h"
#include "watch/sources/mysql_locks.h"
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
/// Tables with ShedLock's columns on which the user has any right, for find_tables.
constexpr std::string_view kLockTables = R"(
SELECT CAST(CONCAT('[', IFNULL(GROUP_CONCAT(JSON_ARRAY(c.s, c.t, c.r, c.d)), ''), ']') AS BINARY)
FROM (SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t,
    MIN(IF(FIND_IN_SET('select', PRIVILEGES) > 0, 1, 0)) AS r,
    MAX(IF(COLUMN_NAME = 'locked_at', 1, 0)) AS d
  FROM information_schema.COLUMNS
  WHERE COLUMN_NAME IN ('name', 'lock_until', 'locked_by', 'locked_at')
    AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
  GROUP BY TABLE_SCHEMA, TABLE_NAME
  HAVING SUM(IF(COLUMN_NAME = 'locked_at', 0, 1)) = 3 LIMIT 20) AS c)";

class MysqlWatch final : public SqlWatch {
 public:
  MysqlWatch(const mysql::Endpoint& endpoint, const Watching& watching)
      : SqlWatch(watching), session_(endpoint, request_.command_timeout, env_) {}

  void begin() {
    const auto instrument = probe(std::string(kInstrument), denied_);
    // Takes the right to see the sessions of all users.
    const bool sees_sessions =
        probe("SELECT COUNT(*) FROM information_schema.INNODB_CMP", no_sessions_).has_value();
    std::string not_installed;
    if (instrument != "YES" ||
        !shows(NamedLocks::performance_schema, "performance_schema.metadata_locks", denied_)) {
      tells_waiters_ = sees_sessions;
      if (!shows(NamedLocks::plugin, "information_schema.METADATA_LOCK_INFO", not_installed)) {
        shown_ = NamedLocks::by_name;
        locks_in_ = "IS_USED_LOCK of each name";
      }
    }
    find_tables(std::string(kLockTables));
    if (shown_ == NamedLocks::by_name && !can_do_by_name()) {
      misread(fmt::format(
          "it does not show named locks (GET_LOCK): {}; or name them in --locks, without * and ?{}",
          kToSwitchOn, denied_.empty() ? "" : " (" + denied_ + ")"));
    }
  }

 private:
  sql::Session& session() override { return session_; }

  sql::Statement reading(std::string_view name, const std::string& select,
                         std::int64_t milliseconds) const override {
    return {.name = name,
            .sql = fmt::format("SET STATEMENT max_statement_time = {}.{:03}, lock_wait_timeout = "
                               "0, group_concat_max_len = 1000000 FOR {}",
                               milliseconds / 1000, milliseconds % 1000, select),
            .how = sql::Statement::How::once,
            .answered = "SELECT"};
  }
  std::string lock_look() const override { return named_lock_look(shown_, request_.locks); }
  tl::expected<SqlLook, std::string> read_lock_look(std::string_view text) const override {
    return read_named_locks(text);
  }
  std::string table_look() const override { return mysql_table_look(tables_); }

  void describe(SourceFacts& facts) const override {
    facts.store = "mysql";
    auto& unseen = facts.unseen;
    if (shown_ == NamedLocks::performance_schema) {
      facts.waiters = "sessions that wait, in metadata_locks";
    } else {
      if (tells_waiters_) facts.waiters = "sessions in the state User lock, in PROCESSLIST";
      unseen.emplace_back(
          "who waits for a lock whose name is not in the waiting statement as text, and the "
          "programs of sessions: performance_schema shows both");
    }
    if (shown_ == NamedLocks::by_name) {
      unseen.push_back(
          fmt::format("named locks but those in --locks without * and ?: {}", kToSwitchOn));
    }
    if (!no_sessions_.empty()) {
      unseen.push_back(
          fmt::format("the sessions of other users, and since when they hold or wait: "
                      "{}",
                      no_sessions_));
    }
    unseen.insert(unseen.end(),
                  {"locks of rows and tables: information_schema.INNODB_LOCK_WAITS shows who waits "
                   "for them",
                   "whether a named lock was released or its session ended",
                   "behind a proxy that shares connections: which client has a lock",
                   "lock tables on which the user has no right at all"});
    for (const SqlTable& table : tables_) {
      unseen.push_back("the time zone of " + table.display() + ": its times are read as UTC");
    }
  }

  /// Nothing if the server refuses it, with its reason.
  std::optional<std::string> probe(const std::string& select, std::string& refused) {
    budget_.owe(1);
    auto answer = try_ask("what the server shows", select, &refused);
    const std::string prefix = session_.display() + ": ";
    if (refused.starts_with(prefix)) refused.erase(0, prefix.size());
    return answer;
  }
  bool shows(NamedLocks way, std::string_view in, std::string& refused) {
    shown_ = way;
    locks_in_ = in;
    return probe(lock_look(), refused).has_value();
  }
  /// Whether each pattern is a name, or for the locks of a table.
  bool can_do_by_name() const {
    return !request_.locks.empty() &&
           std::ranges::all_of(request_.locks, [&](const std::string& pattern) {
             return is_name(pattern) || std::ranges::any_of(tables_, [&](const SqlTable& table) {
                      return pattern.starts_with(table.display() + ":");
                    });
           });
  }

  mysql::Session session_;
  NamedLocks shown_ = NamedLocks::performance_schema;
  std::string denied_;       ///< why performance_schema is refused
  std::string no_sessions_;  ///< why the sessions of other users are
};

}  // namespace

Made make_mysql_source(const std::string& url, const Request& request) {
  return one_server<MysqlWatch>(url, request, mysql::parse_endpoint);
}

}  // namespace lockbench::watch
