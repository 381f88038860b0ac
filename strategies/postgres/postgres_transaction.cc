#include <fmt/format.h>

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "strategies/postgres/lock.h"
#include "strategies/registry.h"
#include "strategies/waiting/retry.h"

namespace lockbench::postgres {
namespace {

const Statement begin{.name = "BEGIN", .sql = "BEGIN", .answered = "BEGIN"};
const Statement commit{.name = "COMMIT", .sql = "COMMIT"};
const Statement rollback{.name = "ROLLBACK", .sql = "ROLLBACK", .answered = "ROLLBACK"};
// A failed wait for a further lock would otherwise end the transaction, and with it all locks.
const Statement set_savepoint{
    .name = "SAVEPOINT", .sql = "SAVEPOINT further_lock", .answered = "SAVEPOINT"};
const Statement rollback_to{.name = "ROLLBACK TO SAVEPOINT",
                            .sql = "ROLLBACK TO SAVEPOINT further_lock",
                            .answered = "ROLLBACK"};
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
const Statement next_number{
    .name = "nextval", .sql = "SELECT nextval('fencing')", .answered = "SELECT"};
const Statement insert_row{.name = "INSERT",
                           .sql = "INSERT INTO lock_row (key) VALUES ($1) ON CONFLICT DO NOTHING",
                           .answered = "INSERT"};
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

/// A lock that the server frees at the end of its transaction, which stays open while the lock is
/// held. All locks of a client are in one transaction, as in applications, so that the server sees
/// deadlocks: each stays taken until the last of them is released.
class TransactionLock : public ServerQueueLock {
 public:
  explicit TransactionLock(const Context& context)
      : ServerQueueLock(context),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env()) {
  }

  StoreResult<void> connect() override { return session_.connect(); }

  ReleaseResult release(const Lease& lease) override {
    if (held_.erase(lease.token) == 0) return {ReleaseOutcome::not_owner, {}};
    if (lease.state->lost_at()) return {ReleaseOutcome::not_owner, {}};
    if (!held_.empty()) {
      session_.unbind(lease.state);
      return {ReleaseOutcome::released, {}};
    }
    return end(lease);
  }

 protected:
  using Parameters = std::span<const std::string>;

  /// Begins the transaction, or for a `further` lock sets a savepoint in it.
  virtual StoreResult<Answer> begin_for(const AcquireRequest& request, bool further) {
    return ask(session_, further ? set_savepoint : begin, request);
  }
  /// Locks within the transaction, and draws a fencing number. No row: the lock was not granted.
  virtual StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) = 0;
  /// If there was no row: whether there is one now.
  virtual StoreResult<bool> make_row(const AcquireRequest& /*request*/) { return false; }

  Session& session() override { return session_; }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    std::erase_if(held_, [](const auto& lease) { return lease.second->lost_at().has_value(); });
    StoreResult<std::optional<Grant>> grant = lock_in_transaction(request, may_wait);
    if (grant && !grant->has_value()) {
      const auto made = make_row(request);
      if (!made) return tl::unexpected(made.error());
      if (*made) grant = lock_in_transaction(request, may_wait);
    }
    if (!grant) return tl::unexpected(grant.error());
    return grant->value_or(Grant{.kind = Grant::Kind::taken});
  }

  void granted(const Lease& lease) override {
    session_.bind(lease.state);
    held_.emplace(lease.token, lease.state);
  }

  StoreResult<Answer> ask(Session& session, const Statement& statement,
                          const AcquireRequest& request, Parameters parameters = {}) {
    auto answer = session.call(statement, request.key, parameters,
                               {.wait_until = request.deadline, .stop = request.stop});
    if (answer && answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session).error());
    }
    return answer;
  }

  bool holds_any() const { return !held_.empty(); }

 private:
  /// COMMIT; the server answers ROLLBACK if the transaction had failed.
  ReleaseResult end(const Lease& lease) {
    const auto answer = session_.call(commit, lease.key, {});
    session_.unbind(lease.state);
    if (!answer) {
      // An open transaction ends with the connection.
      session_.close();
      return {ReleaseOutcome::failed, answer.error().message};
    }
    if (answer->done() && answer->tag == "COMMIT") return {ReleaseOutcome::released, {}};
    if (answer->done() && answer->tag != "ROLLBACK") {
      return {ReleaseOutcome::failed,
              session_.not_understood("COMMIT or ROLLBACK", *answer).value().message};
    }
    lease.state->mark_lost(env().now());
    // A rollback takes back what was set in the transaction.
    session_.close();
    return {ReleaseOutcome::not_owner, {}};
  }

  /// Nothing: no row was returned.
  StoreResult<std::optional<Grant>> lock_in_transaction(const AcquireRequest& request,
                                                        bool may_wait) {
    const bool further = holds_any();
    const auto begun = begin_for(request, further);
    if (!begun) return leave_failed(begun.error());
    // Outside a transaction the lock would last for the statement only.
    if (!begun->done()) return session_.not_understood("BEGIN", *begun);
    const auto locked = lock(request, may_wait);
    if (!locked) return leave_failed(locked.error());
    if (!locked->done() || locked->rows == 0) {
      if (auto ended = ask(session_, further ? rollback_to : rollback, request); !ended) {
        return leave_failed(ended.error());
      }
      if (locked->done()) return std::nullopt;
      return to_grant(locked, session_);
    }
    auto numbered = to_grant(locked, session_);
    if (!numbered) return leave_failed(numbered.error());
    return numbered;
  }

  /// After a failure inside the transaction, which the next COMMIT would turn into a rollback of
  /// all locks.
  tl::unexpected<StoreError> leave_failed(const StoreError& error) {
    const bool goes_on = holds_any() && error.kind == StoreError::Kind::rejected;
    // An open transaction ends with the connection.
    if (!goes_on || !session_.call(rollback_to, {}, {})) session_.close();
    return tl::unexpected(error);
  }

  Session session_;
  std::unordered_map<std::string, std::shared_ptr<LeaseState>> held_;  ///< by token
};

/// Locks the key's row by SELECT ... FOR UPDATE.
class Row : public TransactionLock {
 public:
  explicit Row(const Context& context)
      : TransactionLock(context),
        rows_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env()) {}

 protected:
  StoreResult<Answer> lock(const AcquireRequest& request, bool may_wait) override {
    return lock_by(may_wait ? select_row : select_nowait, request);
  }

  StoreResult<Answer> lock_by(const Statement& select, const AcquireRequest& request) {
    const std::string key(request.key);
    auto locked = ask(session(), select, request, {&key, 1});
    if (!locked || !locked->done() || locked->rows == 0) return locked;
    if (locked->value == "0") return Answer{.kind = Answer::Kind::lock_not_available};
    if (locked->value != "1") return session().not_understood("0 or 1", *locked);
    return ask(session(), next_number, request);
  }

  /// The first client to use a key creates its row, in a transaction of its own: in the client's,
  /// others would wait for its end.
  StoreResult<bool> make_row(const AcquireRequest& request) override {
    const std::string key(request.key);
    const auto made = [](const Answer&) { return true; };
    if (!holds_any()) return ask(session(), insert_row, request, {&key, 1}).map(made);
    auto ready = rows_.use_schema(schema_of_key(request.key), request.key, request.stop);
    return before_request(ready.and_then([&] {
      return ask(rows_, insert_row, request, {&key, 1}).map(made);
    }));
  }

 private:
  /// Makes rows while locks are held. Connects at the first of them, and stays: a figure of each
  /// would be that of connecting.
  Session rows_;
};

/// As a queue's workers do: a row that another client has locked is passed over, so no attempt
/// waits at the server.
class SkipLocked : public Row {
 public:
  explicit SkipLocked(const Context& context) : Row(context), waiting_(context.waiting) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    return retry(request, env(), waiting_, [&](const AcquireRequest& once) -> Attempt {
      const auto grant = attempt(once, false);
      if (!grant) return tl::unexpected(grant.error());
      if (grant->kind != Grant::Kind::granted) return std::nullopt;
      return lease_of(once, *grant);
    });
  }

 protected:
  StoreResult<Answer> lock(const AcquireRequest& request, bool /*may_wait*/) override {
    return lock_by(select_skip_locked, request);
  }

 private:
  const WaitPolicy waiting_;
};

/// pg_advisory_xact_lock, behind a transaction pooler too: nothing outlives the transaction, which
/// has one session for itself, and no statement is prepared.
class AdvisoryXact : public TransactionLock {
 public:
  using TransactionLock::TransactionLock;

 protected:
  StoreResult<void> prepare(const AcquireRequest& request, bool /*may_wait*/) override {
    return session().have_schema(schema_of_key(request.key), request.key, request.stop);
  }

  StoreResult<Answer> begin_for(const AcquireRequest& request, bool further) override {
    const Statement& first = further ? set_savepoint : begin;
    const Statement settings{
        .name = first.name,
        .sql = fmt::format("{}; SET LOCAL search_path = {}; SET LOCAL lock_timeout = {}; "
                           "SELECT pg_backend_pid()",
                           first.sql, schema_of_key(request.key), lock_timeout(request.deadline)),
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

/// `differs`: what is not as for all of them.
Descriptor in_transaction(Descriptor lock, Traits differs) {
  lock.backend = "postgres";
  differs.expiry = Expiry::session;
  differs.release_check = OwnerCheck::atomic;
  differs.released_together = true;
  differs.ends_with_connection = true;
  differs.reentrant = true;
  differs.fencing = true;
  lock.traits = std::move(differs);
  return with_known_hazards(std::move(lock));
}

const Registration postgres_row(in_transaction(
    {
        .name = "postgres-row",
        .summary =
            "SELECT ... FOR UPDATE on the key's row, in a transaction open as long as it is held",
        .acquire_commands = {"set_config lock_timeout (when it changes)",
                             "BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE (NOWAIT without waiting)",
                             "nextval fencing",
                             "ROLLBACK (if not granted; to the savepoint of a further lock)"},
        .release_commands = {"COMMIT (with the last lock of the client)"},
        .source = "PostgreSQL documentation, 13.3.2 \"Row-Level Locks\"",
        .libraries = {{"any", "every driver for PostgreSQL",
                       "select ... for update in a transaction", Reentry::uncounted}},
        .make = construct<Row>,
    },
    {.fair = true, .waiting = {.kind = WaitKind::queue}, .waiting_choices = {}}));

const Registration postgres_skip_locked(in_transaction(
    {
        .name = "postgres-skip-locked",
        .summary = "SELECT ... FOR UPDATE SKIP LOCKED on the key's row, as queues in a table have "
                   "it: polls, and never waits at the server",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock)",
                             "SELECT ... FROM row WHERE key FOR UPDATE SKIP LOCKED",
                             "nextval fencing",
                             "ROLLBACK (if not granted; to the savepoint of a further lock)"},
        .release_commands = {"COMMIT (with the last lock of the client)"},
        .source = "PostgreSQL documentation, SELECT, \"The Locking Clause\"",
        .make = construct<SkipLocked>,
    },
    {}));

const Registration postgres_advisory_xact(in_transaction(
    {
        .name = "postgres-advisory-xact",
        .summary = "pg_advisory_xact_lock in a transaction open as long as it is held: works "
                   "behind a transaction pooler",
        .acquire_commands = {"BEGIN (SAVEPOINT for a further lock), with SET LOCAL lock_timeout",
                             "pg_advisory_xact_lock hash(key), then nextval",
                             "pg_try_advisory_xact_lock hash(key), then nextval (without waiting)",
                             "ROLLBACK (if not granted; to the savepoint of a further lock)"},
        .release_commands = {"COMMIT (with the last lock of the client)"},
        .source = "PostgreSQL documentation, 13.3.5 \"Advisory Locks\"",
        .libraries = {{"any", "every driver for PostgreSQL",
                       "select pg_advisory_xact_lock($1) in a transaction", Reentry::uncounted}},
        .make = construct<AdvisoryXact>,
    },
    {.pooled = true, .fair = true, .waiting = {.kind = WaitKind::queue}, .waiting_choices = {}}));

}  // namespace
}  // namespace lockbench::postgres
