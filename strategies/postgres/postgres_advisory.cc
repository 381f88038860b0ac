#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

/// The most failed requests to remember; locks beyond that end with their session.
constexpr std::size_t kMaxDoubts = 1024;

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

/// pg_advisory_lock on the client's session: waits at the server, first come, first served, and
/// ends with the session.
class Advisory : public ServerQueueLock {
 public:
  explicit Advisory(const Context& context)
      : ServerQueueLock(context),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env()) {
  }

  StoreResult<void> connect() override { return session_.connect(); }

  ReleaseResult release(const Lease& lease) override {
    // The server does not distinguish the leases of one session.
    const bool held = held_.erase(lease.state) > 0 && !lease.state->lost_at();
    if (!held) return {ReleaseOutcome::not_owner, {}};
    const Lock lock{advisory_number(lease.key), lease.mode};
    const auto answer = unlock(lock, lease.key);
    session_.unbind(lease.state);
    if (!answer) {
      after_failure(lock, lease.key);
      return {ReleaseOutcome::failed, answer.error().message};
    }
    const bool released = answer->value == "t";
    if (answer->done() && !released && answer->value != "f") {
      return {ReleaseOutcome::failed, session_.not_understood("t or f", *answer).value().message};
    }
    settle_doubts(lock, lease.key);
    if (released) return {ReleaseOutcome::released, {}};
    lease.state->mark_lost(env().now());
    return {ReleaseOutcome::not_owner, {}};
  }

 protected:
  Session& session() override { return session_; }

  /// A statement with the lock's number as its parameter.
  virtual StoreResult<Answer> ask(const Statement& statement, std::string_view key,
                                  const std::string& number, const Patience& patience) {
    return session_.call(statement, key, {&number, 1}, patience);
  }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    const Lock lock{advisory_number(request.key), request.mode};
    const std::string number = std::to_string(lock.first);
    const Statements& known = statements(request.mode);
    const auto answer = ask(may_wait ? known.lock : known.try_lock, request.key, number,
                            {.wait_until = request.deadline, .stop = request.stop});
    const bool in_error = answer ? answer->kind == Answer::Kind::cancelled
                                 : answer.error().kind == StoreError::Kind::rejected;
    if (in_error) {
      after_failure(lock, request.key);
    } else if (answer && (answer->kind == Answer::Kind::lock_not_available ||
                          answer->kind == Answer::Kind::deadlock)) {
      take_back(lock, request.key);
    }
    return to_grant(answer, session_);
  }

  void granted(const Lease& lease) override {
    session_.bind(lease.state);
    held_.emplace(lease.state, Lock{advisory_number(lease.key), lease.mode});
  }

 private:
  /// The server counts a session's grants of a number, separately for each mode.
  using Lock = std::pair<std::int64_t, Mode>;

  StoreResult<Answer> unlock(const Lock& lock, std::string_view key) {
    return ask(statements(lock.second).unlock, key, std::to_string(lock.first), {});
  }

  /// After a failed statement. A grant outlives the failure of its statement, so the session may
  /// hold a lock without a lease of this client.
  void after_failure(const Lock& lock, std::string_view key) {
    std::erase_if(held_, [](const auto& lease) { return lease.first->lost_at().has_value(); });
    if (held_.empty()) return session_.close();
    take_back(lock, key);
  }

  /// The same if the session goes on. Needed after a wait in vain, too: the lock may be granted
  /// just before the server's process sees that the time is up.
  void take_back(const Lock& lock, std::string_view key) {
    if (!is_held(lock)) {
      (void)unlock(lock, key);
    } else if (doubts_.size() < kMaxDoubts) {
      doubts_.insert(lock);
    }
  }

  /// Once a lock's last lease is released, releases the grants that failed requests may have added.
  void settle_doubts(const Lock& lock, std::string_view key) {
    if (is_held(lock)) return;
    for (auto left = doubts_.erase(lock); left > 0; --left) (void)unlock(lock, key);
  }

  bool is_held(const Lock& lock) const {
    return std::any_of(held_.begin(), held_.end(), [&](const auto& lease) {
      return lease.second == lock && !lease.first->lost_at();
    });
  }

  Session session_;
  std::map<std::shared_ptr<LeaseState>, Lock> held_;  ///< by lease
  std::multiset<Lock> doubts_;                        ///< see take_back()
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
    whole.sql = fmt::format("SET LOCAL search_path = {}; SET LOCAL lock_timeout = {}; {}",
                            schema_of_key(key), lock_timeout(patience.wait_until), whole.sql);
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
