#include <fmt/format.h>

#include <utility>

#include "strategies/mysql/lock.h"
#include "strategies/registry.h"

namespace lockbench::mysql {
namespace {

class MysqlRow : public OnMysql<sql::RowLock> {
 public:
  using OnMysql::OnMysql;

 protected:
  StoreResult<void> prepare(const AcquireRequest& request, bool may_wait) override {
    auto fits = check_row_key(session(), request.key);
    return fits ? RowLock::prepare(request, may_wait) : fits;
  }

  const Statements& statements() const override {
    // Of a row that was made meanwhile, the insertion would wait for its lock: then it is there.
    static const Statements known{
        .insert = {.name = "INSERT",
                   .sql = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR "
                          "INSERT IGNORE INTO lock_row (name) VALUES (?)",
                   .answered = "INSERT"},
        .next_number = {.name = "NEXTVAL", .sql = "SELECT NEXTVAL(fencing)", .answered = "SELECT"}};
    return known;
  }

  /// WAIT sets innodb_lock_wait_timeout for the statement, in whole seconds by a clock that is some
  /// milliseconds late: a second more than needed. max_statement_time ends it to the millisecond,
  /// or earlier if the server's limit is shorter.
  Statement select(const AcquireRequest& request, bool may_wait) const override {
    constexpr std::string_view kSelect = "SELECT 1 FROM lock_row WHERE name = ? FOR UPDATE";
    std::string sql = fmt::format("{} NOWAIT", kSelect);
    if (may_wait) {
      const Duration wait = time_to_wait(env(), request.deadline);
      const std::int64_t milliseconds = ceil_milliseconds(wait);
      sql = fmt::format(
          "SET STATEMENT max_statement_time = IF(@@max_statement_time > 0, "
          "LEAST(@@max_statement_time, {0}.{1:03}), {0}.{1:03}) FOR {2} WAIT {3}",
          milliseconds / 1000, milliseconds % 1000, kSelect, ceil_seconds(wait) + 1);
    }
    return {.name = "SELECT", .sql = std::move(sql), .waits = may_wait, .answered = "SELECT"};
  }

  /// 1: locked; 0: it is another's; no row: there is none.
  static Statement skip_locked() {
    return {.name = "SELECT",
            .sql =
                "SELECT EXISTS (SELECT 1 FROM lock_row WHERE name = ? FOR UPDATE SKIP LOCKED) "
                "FROM lock_row WHERE name = ?",
            .answered = "SELECT"};
  }

  StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) override {
    auto locked = RowLock::lock(request, may_wait);
    // To break a deadlock, InnoDB rolls the whole transaction back.
    if (locked && locked->kind == Answer::Kind::deadlock) session().lose_bound();
    return locked;
  }
};

const Registration mysql_row(sql::in_transaction(
    {
        .name = "mysql-row",
        .backend = "mysql",
        .summary =
            "SELECT ... FOR UPDATE on the key's row, in a transaction open as long as it is held",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE WAIT seconds, with "
                             "max_statement_time (NOWAIT without waiting)",
                             "NEXTVAL fencing"},
        .source = "MariaDB documentation, \"FOR UPDATE\"",
        .libraries = {{"any", "every driver for MariaDB", "select ... for update in a transaction",
                       Reentry::uncounted}},
        .make = construct<MysqlRow>,
    },
    {.fair = true, .waiting = {.kind = WaitKind::queue}, .waiting_choices = {}}));

const Registration mysql_skip_locked(sql::in_transaction(
    {
        .name = "mysql-skip-locked",
        .backend = "mysql",
        .summary = "SELECT ... FOR UPDATE SKIP LOCKED on the key's row, as queues in a table have "
                   "it: polls, and never waits at the server",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE SKIP LOCKED",
                             "NEXTVAL fencing"},
        .source = "MariaDB documentation, SELECT, \"SKIP LOCKED\"",
        .make = construct<sql::SkipLocked<MysqlRow>>,
    },
    {}));

}  // namespace
}  // namespace lockbench::mysql
