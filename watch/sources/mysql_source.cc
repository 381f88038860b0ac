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

class MysqlWatch final : public SqlWatch {
 public:
  MysqlWatch(const mysql::Endpoint& endpoint, const Watching& watching)
      : SqlWatch(watching, "performance_schema.metadata_locks"),
        session_(endpoint, request_.command_timeout, env_),
        names_(names_among(request_.locks)) {}

  void begin() {
    const auto instrument = probe(
        "SELECT IF(@@performance_schema, (SELECT CONCAT(ENABLED) FROM "
        "performance_schema.setup_instruments WHERE NAME = 'wait/lock/metadata/sql/mdl'), 'NO')",
        denied_);
    // Shows who waits, if not metadata_locks itself does.
    const bool sees_sessions =
        probe("SELECT COUNT(*) FROM information_schema.INNODB_CMP", no_sessions_) != std::nullopt;
    if (instrument == "YES" && shows(NamedLocks::performance_schema, denied_)) {
      find_tables(mysql_tables());
      return;
    }
    tells_waiters_ = sees_sessions;
    std::string not_installed;
    if (shows(NamedLocks::plugin, not_installed)) {
      locks_in_ = "information_schema.METADATA_LOCK_INFO";
      find_tables(mysql_tables());
      return;
    }
    shown_ = NamedLocks::by_name;
    locks_in_ = "IS_USED_LOCK of each name";
    find_tables(mysql_tables());
    if (!can_do_by_name()) {
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
  std::string lock_look() const override { return named_lock_look(shown_, names_); }
  tl::expected<SqlLook, std::string> read_lock_look(std::string_view text) const override {
    return read_named_locks(text);
  }
  std::string table_look() const override { return mysql_table_look(tables_); }

  void describe(SourceFacts& facts) const override {
    facts.store = "mysql";
    auto& unseen = facts.unseen;
    if (shown_ == NamedLocks::performance_schema) {
      facts.waiters = "sessions that wait, in performance_schema.metadata_locks";
    } else {
      if (tells_waiters_) facts.waiters = "sessions in the state User lock, in PROCESSLIST";
      unseen.emplace_back(
          "who waits for a lock whose name is not in the waiting statement as text; the programs "
          "of sessions: performance_schema shows both");
    }
    if (shown_ == NamedLocks::by_name) {
      unseen.push_back(
          fmt::format("named locks but those in --locks without * and ?: {}", kToSwitchOn));
    }
    if (!no_sessions_.empty()) {
      unseen.push_back(fmt::format(
          "users and addresses of sessions, who waits first, and since when: {}", no_sessions_));
    }
    unseen.insert(unseen.end(),
                  {"locks of rows and tables: information_schema.INNODB_LOCK_WAITS shows who waits "
                   "for them",
                   "whether a named lock was released or its session ended",
                   "behind a proxy that shares connections: which client has a lock",
                   "lock tables on which the user has no right at all"});
    for (const SqlTable& table : tables_) {
      unseen.push_back(
          fmt::format("the time zone of {}: its times are read as UTC", table.display()));
    }
  }

  /// Nothing if the server refuses it, with its reason.
  std::optional<std::string> probe(const std::string& select, std::string& refused) {
    budget_.owe(1);
    auto answer = try_ask("the server's means", select, &refused);
    const std::string prefix = session_.display() + ": ";
    if (refused.starts_with(prefix)) refused.erase(0, prefix.size());
    return answer;
  }
  bool shows(NamedLocks way, std::string& refused) {
    shown_ = way;
    return probe(lock_look(), refused).has_value();
  }
  /// Whether each pattern is a name, or is for the locks of a table.
  bool can_do_by_name() const {
    const auto fits = [&](const std::string& pattern) {
      return std::ranges::find(names_, pattern) != names_.end() ||
             std::ranges::any_of(tables_, [&](const SqlTable& table) {
               return pattern.starts_with(table.display() + ":");
             });
    };
    return !request_.locks.empty() && std::ranges::all_of(request_.locks, fits);
  }

  mysql::Session session_;
  const std::vector<std::string> names_;
  NamedLocks shown_ = NamedLocks::performance_schema;
  std::string denied_;       ///< why performance_schema is refused
  std::string no_sessions_;  ///< why other users' sessions are
};

}  // namespace

Made make_mysql_source(const std::string& url, const Request& request) {
  return one_server<MysqlWatch>(url, request, mysql::parse_endpoint);
}

}  // namespace lockbench::watch
