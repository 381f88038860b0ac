#include <fmt/format.h>

#include <utility>

#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

/// The statements of one mode. Those that lock select FROM the lock function, so that the fencing
/// number is drawn while the lock is held.
struct Statements {
  Statement lock, try_lock, unlock;
};

Statements calling(std::string_view lock, std::string_view try_lock, std::string_view unlock) {
  constexpr std::string_view kTry =
      "SELECT nextval('fencing') FROM {}($1::bigint) AS granted WHERE granted";
  return {.lock = {.name = lock,
                   .sql = fmt::format("SELECT nextval('fencing') FROM {}($1::bigint)", lock),
                   .waits = true,
                   .answered = "SELECT"},
          .try_lock = {.name = try_lock, .sql = fmt::format(kTry, try_lock), .answered = "SELECT"},
          .unlock = {.name = unlock,
                     .sql = fmt::format("SELECT {}($1::bigint)", unlock),
                     .answered = "SELECT"}};
}

const Statements exclusive =
    calling("pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_unlock");
const Statements shared =
    calling("pg_advisory_lock_shared", "pg_try_advisory_lock_shared", "pg_advisory_unlock_shared");

const Statements& statements(Mode mode) { return mode == Mode::shared ? shared : exclusive; }

/// pg_advisory_lock on the client's session.
class Advisory : public OnPostgres<sql::NamedLock> {
 public:
  using OnPostgres::OnPostgres;

 protected:
  std::string name_of(std::string_view key) const override {
    return std::to_string(advisory_number(key));
  }
  Statement taking(const AcquireRequest& request, bool may_wait) const override {
    const Statements& known = statements(request.mode);
    return may_wait ? known.lock : known.try_lock;
  }
  Statement unlocking(Mode mode) const override { return statements(mode).unlock; }
};

/// The same, trusting that one process at the server executes all statements of a connection. Each
/// statement has its settings with it, so that the lock is all that a transaction pooler breaks.
class UncheckedAdvisory : public Advisory {
 public:
  using Advisory::Advisory;

 protected:
  StoreResult<void> prepare(const AcquireRequest& request, bool /*may_wait*/) override {
    return session().have_schema(schema_of_key(request.key), request.key, request.stop);
  }

  StoreResult<Answer> ask(const Statement& statement, std::string_view key,
                          const std::string& number, const Patience& patience) override {
    constexpr std::string_view kParameter = "$1";
    Statement whole = statement;
    whole.how = Statement::How::script;  // which has no parameters
    whole.sql.replace(whole.sql.find(kParameter), kParameter.size(), fmt::format("'{}'", number));
    whole.sql = fmt::format("SET LOCAL search_path = {}; SET LOCAL lock_timeout = {}; {}; {}",
                            schema_of_key(key), lock_timeout(env(), patience.wait_until),
                            commit_to_disk(true), whole.sql);
    return session().call(whole, key, {}, patience);
  }
};

Descriptor advisory(Descriptor lock) {
  lock.backend = "postgres";
  for (const char* const command :
       {"pg_advisory_lock hash(key), then nextval",
        "pg_try_advisory_lock hash(key), then nextval (without waiting)",
        "pg_advisory_unlock hash(key) (after a wait in vain)"}) {
    lock.acquire_commands.emplace_back(command);
  }
  lock.release_commands = {"pg_advisory_unlock hash(key)"};
  lock.traits = {.expiry = Expiry::session,
                 .release_check = OwnerCheck::atomic,
                 .ends_with_connection = true,
                 .reentrant = true,
                 .fencing = true,
                 .fair = true,
                 .shared = true,
                 .waiting = {.kind = WaitKind::queue},
                 .waiting_choices = {}};
  return with_known_hazards(std::move(lock));
}

const Registration postgres_advisory(advisory({
    .name = "postgres-advisory",
    .summary = "pg_advisory_lock on the client's session, waited for in the server's queue; with a "
               "shared mode",
    .acquire_commands = {"set_config lock_timeout (when it changes)"},
    .source = "PostgreSQL documentation, 13.3.5 \"Advisory Locks\"",
    .typical = true,
    .libraries = {{"Java", "JDBC with one connection for each holder", "select pg_advisory_lock(?)",
                   Reentry::counted},
                  {"Go", "pgx, or database/sql with one Conn for each holder",
                   "select pg_advisory_lock($1)", Reentry::counted},
                  {"Python", "psycopg, django-pglock", "select pg_advisory_lock(%s)",
                   Reentry::counted},
                  {"JavaScript", "node-postgres with one client for each holder",
                   "select pg_advisory_lock($1)", Reentry::counted}},
    .make = construct<Advisory>,
}));

const Registration postgres_advisory_unchecked(advisory({
    .name = "postgres-advisory-unchecked",
    .summary =
        "As postgres-advisory, but also behind a transaction pooler, where the lock stays in "
        "a session of the pool",
    .source = "common practice; authentik issue 23876",
    .superseded_by = "postgres-advisory",
    .superseded_because = "behind a transaction pooler it leaks; postgres-advisory refuses there, "
                          "and postgres-advisory-xact works",
    .hazards = {{"pooler-leaked-lock", HazardOutcome::stuck},
                {"pooler-reentry", HazardOutcome::double_grant}},
    .make = construct<UncheckedAdvisory>,
}));

}  // namespace
}  // namespace lockbench::postgres
