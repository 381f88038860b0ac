#include <optional>
#include <unordered_map>
#include <utility>

#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

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
const Statement select_nowait{.name = "SELECT",
                              .sql = "SELECT 1 FROM lock_row WHERE key = $1 FOR UPDATE NOWAIT",
                              .answered = "SELECT"};
const Statement next_number{
    .name = "nextval", .sql = "SELECT nextval('fencing')", .answered = "SELECT"};
const Statement insert_row{.name = "INSERT",
                           .sql = "INSERT INTO lock_row (key) VALUES ($1) ON CONFLICT DO NOTHING",
                           .answered = "INSERT"};

/// Locks the key's row by SELECT ... FOR UPDATE in a transaction that stays open while the lock is
/// held. All locks of a client are in one transaction, as in applications, so that the server sees
/// deadlocks: each stays taken until the last of them is released.
class Row : public ServerQueueLock {
 public:
  explicit Row(const Context& context)
      : ServerQueueLock(context),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env()),
        rows_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(), env()) {}

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
  Session& session() override { return session_; }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    std::erase_if(held_, [](const auto& lease) { return lease.second->lost_at().has_value(); });
    StoreResult<std::optional<Grant>> grant = lock_row(request, may_wait);
    if (grant && !grant->has_value()) {
      // The first client to use a key creates its row.
      if (auto made = make_row(request); !made) return tl::unexpected(made.error());
      grant = lock_row(request, may_wait);
    }
    if (!grant) return tl::unexpected(grant.error());
    return grant->value_or(Grant{.kind = Grant::Kind::taken});
  }

  void granted(const Lease& lease) override {
    session_.bind(lease.state);
    held_.emplace(lease.token, lease.state);
  }

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

  StoreResult<Answer> ask(Session& session, const Statement& statement,
                          const AcquireRequest& request, bool with_key = false) {
    const std::string key(request.key);
    auto answer =
        session.call(statement, request.key, {&key, with_key ? std::size_t{1} : std::size_t{0}},
                     {.wait_until = request.deadline, .stop = request.stop});
    if (answer && answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session).error());
    }
    return answer;
  }
  StoreResult<Answer> ask(const Statement& statement, const AcquireRequest& request,
                          bool with_key = false) {
    return ask(session_, statement, request, with_key);
  }

  /// In a transaction of its own: in the client's, others would wait for its end.
  StoreResult<void> make_row(const AcquireRequest& request) {
    if (held_.empty()) return ask(insert_row, request, true).map([](const Answer&) {});
    auto made = rows_.use_schema(schema_of_key(request.key), request.key, request.stop);
    if (made) made = ask(rows_, insert_row, request, true).map([](const Answer&) {});
    return before_request(std::move(made));
  }

  /// Nothing: the row does not exist.
  StoreResult<std::optional<Grant>> lock_row(const AcquireRequest& request, bool may_wait) {
    const bool further = !held_.empty();
    const auto begun = ask(further ? set_savepoint : begin, request);
    if (!begun) return leave_failed<std::optional<Grant>>(begun.error());
    // Outside a transaction the row would be locked for the statement only.
    if (!begun->done()) return session_.not_understood("BEGIN", *begun);
    const auto locked = ask(may_wait ? select_row : select_nowait, request, true);
    if (!locked) return leave_failed<std::optional<Grant>>(locked.error());
    if (!locked->done() || locked->rows == 0) {
      if (auto ended = ask(further ? rollback_to : rollback, request); !ended) {
        return leave_failed<std::optional<Grant>>(ended.error());
      }
      if (locked->done()) return std::nullopt;
      return to_grant(locked, session_);
    }
    auto numbered = to_grant(ask(next_number, request), session_);
    if (!numbered) return leave_failed<std::optional<Grant>>(numbered.error());
    // The row is locked until the transaction ends.
    if (numbered->kind != Grant::Kind::granted) session_.close();
    return numbered;
  }

  /// After a failure inside the transaction, which the next COMMIT would turn into a rollback of
  /// all locks.
  template <class T>
  StoreResult<T> leave_failed(const StoreError& error) {
    const bool goes_on = !held_.empty() && error.kind == StoreError::Kind::rejected;
    // An open transaction ends with the connection.
    if (!goes_on || !session_.call(rollback_to, {}, {})) session_.close();
    return tl::unexpected(error);
  }

  Session session_;
  /// Makes rows while locks are held. Connects at the first of them, and stays: a figure of each
  /// would be that of connecting.
  Session rows_;
  std::unordered_map<std::string, std::shared_ptr<LeaseState>> held_;  ///< by token
};

const Registration postgres_row(with_known_hazards({
    .name = "postgres-row",
    .backend = "postgres",
    .summary =
        "SELECT ... FOR UPDATE on the key's row, in a transaction open as long as it is held",
    .acquire_commands = {"set_config lock_timeout (when it changes)",
                         "BEGIN (SAVEPOINT for a further lock)",
                         "SELECT ... FROM row WHERE key FOR UPDATE (NOWAIT without waiting)",
                         "nextval fencing",
                         "ROLLBACK (if not granted; to the savepoint of a further lock)"},
    .release_commands = {"COMMIT (with the last lock of the client)"},
    .source = "PostgreSQL documentation, 13.3.2 \"Row-Level Locks\"",
    .libraries = {{"any", "every driver for PostgreSQL", "select ... for update in a transaction",
                   Reentry::uncounted}},
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .released_together = true,
               .ends_with_connection = true,
               .reentrant = true,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    // Its lock is a transaction that is idle while the holder works.
    .hazards = {{"transaction-timeout-idle", HazardOutcome::double_grant},
                {"transaction-timeout-inside-idle", HazardOutcome::double_grant}},
    .make = construct<Row>,
}));

}  // namespace
}  // namespace lockbench::postgres
