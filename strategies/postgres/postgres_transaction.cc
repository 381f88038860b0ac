#include <fmt/format.h>

#include <utility>

#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

const Statement select_row{.name = "SELECT",
                           .sql = "SELECT 1 FROM lock_row WHERE key = $1 FOR UPDATE",
                           .waits = true,
                           .answered = "SELECT"};
// 1: locked; 0: it is another's; no row: there is none.
const Statement select_skip_locked{
    .name = "SELECT",
    .sql =
        "WITH locked AS (SELECT key FROM lock_row WHERE key = $1 FOR UPDATE SKIP LOCKED) "
        "SELECT (SELECT count(*) FROM locked) FROM lock_row WHERE key = $1",
    .answered = "SELECT"};
const Statement select_nowait{.name = "SELECT",
                              .sql = "SELECT 1 FROM lock_row WHERE key = $1 FOR UPDATE NOWAIT",
                              .answered = "SELECT"};
const Statement advisory_lock{
    .name = "pg_advisory_xact_lock",
    .sql = "SELECT nextval('fencing') FROM pg_advisory_xact_lock($1::bigint)",
    .waits = true,
    .answered = "SELECT"};
const Statement try_advisory_lock{
    .name = "pg_try_advisory_xact_lock",
    .sql =
        "SELECT nextval('fencing') FROM pg_try_advisory_xact_lock($1::bigint) AS granted "
        "WHERE granted",
    .answered = "SELECT"};

class Row : public OnPostgres<sql::RowLock> {
 public:
  using OnPostgres::OnPostgres;

 protected:
  const Statements& statements() const override {
    static const Statements known{
        .insert = {.name = "INSERT",
                   .sql = "INSERT INTO lock_row (key) VALUES ($1) ON CONFLICT DO NOTHING",
                   .answered = "INSERT"},
        .next_number = {
            .name = "nextval", .sql = "SELECT nextval('fencing')", .answered = "SELECT"}};
    return known;
  }
  Statement select(const AcquireRequest& /*request*/, bool may_wait) const override {
    return may_wait ? select_row : select_nowait;
  }
  static const Statement& skip_locked() { return select_skip_locked; }
};

/// pg_advisory_xact_lock, behind a transaction pooler too: nothing outlives the transaction, which
/// has one session for itself, and no statement is prepared.
class AdvisoryXact : public OnPostgres<sql::TransactionLock> {
 public:
  using OnPostgres::OnPostgres;

 protected:
  StoreResult<void> prepare(const AcquireRequest& request, bool /*may_wait*/) override {
    return session().have_schema(schema_of_key(request.key), request.key, request.stop);
  }

  StoreResult<Answer> begin_for(const AcquireRequest& request, bool further) override {
    const Statement& first = further ? sql::set_savepoint : sql::begin;
    const Statement settings{
        .name = first.name,
        .sql = fmt::format("{}; SET LOCAL search_path = {}; SET LOCAL lock_timeout = {}; {}; "
                           "SELECT pg_backend_pid()",
                           first.sql, schema_of_key(request.key),
                           lock_timeout(env(), request.deadline), commit_to_disk(true)),
        .how = Statement::How::script,
        .answered = "SELECT"};
    auto begun = ask(session(), settings, request);
    if (begun && begun->done() && !session().is_served_by(begun->value)) {
      return session().not_understood("a process id", *begun);
    }
    return begun;
  }

  StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) override {
    const std::string number = std::to_string(advisory_number(request.key));
    return ask(session(), may_wait ? advisory_lock : try_advisory_lock, request, {&number, 1});
  }
};

const Registration postgres_row(sql::in_transaction(
    {
        .name = "postgres-row",
        .backend = "postgres",
        .summary =
            "SELECT ... FOR UPDATE on the key's row, in a transaction open as long as it is held",
        .acquire_commands = {"set_config lock_timeout (when it changes)",
                             "BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE (NOWAIT without waiting)",
                             "nextval fencing"},
        .source = "PostgreSQL documentation, 13.3.2 \"Row-Level Locks\"",
        .libraries = {{"any", "every driver for PostgreSQL",
                       "select ... for update in a transaction", Reentry::uncounted}},
        .make = construct<Row>,
    },
    {.fair = true, .waiting = {.kind = WaitKind::queue}, .waiting_choices = {}}));

const Registration postgres_skip_locked(sql::in_transaction(
    {
        .name = "postgres-skip-locked",
        .backend = "postgres",
        .summary = "SELECT ... FOR UPDATE SKIP LOCKED on the key's row, as queues in a table have "
                   "it: polls, and never waits at the server",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE SKIP LOCKED",
                             "nextval fencing"},
        .source = "PostgreSQL documentation, SELECT, \"The Locking Clause\"",
        .make = construct<sql::SkipLocked<Row>>,
    },
    {}));

const Registration postgres_advisory_xact(sql::in_transaction(
    {
        .name = "postgres-advisory-xact",
        .backend = "postgres",
        .summary = "pg_advisory_xact_lock in a transaction open as long as it is held: works "
                   "behind a transaction pooler",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock), with SET LOCAL lock_timeout",
                             "pg_advisory_xact_lock hash(key), then nextval",
                             "pg_try_advisory_xact_lock hash(key), then nextval (without waiting)"},
        .source = "PostgreSQL documentation, 13.3.5 \"Advisory Locks\"",
        .libraries = {{"any", "every driver for PostgreSQL",
                       "select pg_advisory_xact_lock($1) in a transaction", Reentry::uncounted}},
        .make = construct<AdvisoryXact>,
    },
    {.pooled = true, .fair = true, .waiting = {.kind = WaitKind::queue}, .waiting_choices = {}}));

}  // namespace
}  // namespace lockbench::postgres
