#include <fmt/format.h>

#include "strategies/mysql/lock.h"
#include "strategies/registry.h"

namespace lockbench::mysql {
namespace {

/// GET_LOCK on the client's session. The server ends a wait to the millisecond, and answers to a
/// wait in vain, or one that was interrupted, without an error.
class GetLock : public OnMysql<sql::NamedLock> {
 public:
  using OnMysql::OnMysql;

 protected:
  std::string name_of(std::string_view key) const override { return lock_name(key); }

  Statement taking(const AcquireRequest& request, bool may_wait) const override {
    const std::int64_t wait =
        may_wait ? ceil_milliseconds(time_to_wait(env(), request.deadline)) : 0;
    return {.name = "GET_LOCK",
            .sql = fmt::format("SELECT IF(GET_LOCK(?, {}.{:03}), NEXTVAL(fencing), 0)", wait / 1000,
                               wait % 1000),
            .waits = may_wait,
            .answered = "SELECT"};
  }

  Statement unlocking(Mode /*mode*/) const override {
    return {.name = "RELEASE_LOCK",
            .sql = "SELECT IF(RELEASE_LOCK(?), 't', 'f')",
            .answered = "SELECT"};
  }

  StoreResult<Answer> ask(const Statement& statement, std::string_view key, const std::string& name,
                          const Patience& patience) override {
    auto answer = NamedLock::ask(statement, key, name, patience);
    if (!answer || !answer->done() || answer->value != "0") return answer;
    const bool stopped = statement.waits && (patience.stop.stop_requested() ||
                                             env().waiting_stop(patience.stop).stop_requested());
    if (stopped) return Answer{.kind = Answer::Kind::cancelled};
    if (statement.waits && env().now() < patience.wait_until) {
      return failure_at(session().display(), StoreError::Kind::rejected,
                        "the server has ended the wait: max_statement_time, or KILL QUERY");
    }
    return Answer{};
  }
};

const Registration mysql_get_lock(with_known_hazards({
    .name = "mysql-get-lock",
    .backend = "mysql",
    .summary = "GET_LOCK on the client's session, waited for in the server's queue",
    .acquire_commands = {"GET_LOCK hash(key) timeout, then NEXTVAL"},
    .release_commands = {"RELEASE_LOCK hash(key)"},
    .source = "MariaDB documentation, \"GET_LOCK\"",
    .typical = true,
    .libraries = {{"any", "every driver for MariaDB, with one connection for each holder",
                   "select get_lock(?, timeout)", Reentry::counted},
                  {"Ruby", "with_advisory_lock", "with_advisory_lock(name)", Reentry::counted}},
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .ends_with_connection = true,
               .own_wait_limit = true,
               .reentrant = true,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .make = construct<GetLock>,
}));

}  // namespace
}  // namespace lockbench::mysql
