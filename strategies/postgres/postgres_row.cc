#include <optional>
#include <unordered_map>

#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

const Statement begin{.name = "BEGIN", .sql = "BEGIN", .answered = "BEGIN"};
const Statement commit{.name = "COMMIT", .sql = "COMMIT"};
const Statement rollback{.name = "ROLLBACK", .sql = "ROLLBACK", .answered = "ROLLBACK"};
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
/// held. A transaction holds one lock, so that each can be released alone; a client with several
/// locks has as many connections.
class Row : public ServerQueueLock {
 public:
  explicit Row(const Context& context)
      : ServerQueueLock(context),
        endpoint_(endpoints_of(context, parse_endpoint).front()),
        timeouts_(context.options.timeouts()) {}

  StoreResult<void> connect() override { return session().connect(); }

  ReleaseResult release(const Lease& lease) override {
    const auto held = held_.find(lease.token);
    if (held == held_.end()) return {ReleaseOutcome::not_owner, {}};
    spare_.push_back(std::move(held->second));
    held_.erase(held);
    if (lease.state->lost_at()) return {ReleaseOutcome::not_owner, {}};
    return end(*spare_.back(), lease);
  }

 protected:
  Session& session() override {
    if (!next_ && !spare_.empty()) {
      next_ = std::move(spare_.back());
      spare_.pop_back();
    }
    if (!next_) next_ = std::make_unique<Session>(endpoint_, timeouts_, env());
    return *next_;
  }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    // The first client to use a key creates its row.
    StoreResult<std::optional<Grant>> grant = lock_row(request, may_wait);
    if (grant && !grant->has_value()) {
      const auto made = ask(insert_row, request, true);
      if (!made) return tl::unexpected(made.error());
      grant = lock_row(request, may_wait);
    }
    if (!grant) {
      // An open transaction ends with the connection.
      session().close();
      return tl::unexpected(grant.error());
    }
    return grant->value_or(Grant{.kind = Grant::Kind::taken});
  }

  void granted(const Lease& lease) override {
    next_->bind(lease.state);
    held_.emplace(lease.token, std::move(next_));
  }

 private:
  /// COMMIT; the server answers ROLLBACK if the transaction had failed.
  ReleaseResult end(Session& session, const Lease& lease) {
    const auto answer = session.call(commit, lease.key, {});
    session.unbind(lease.state);
    if (!answer) {
      // An open transaction ends with the connection.
      session.close();
      return {ReleaseOutcome::failed, answer.error().message};
    }
    if (answer->done() && answer->tag == "COMMIT") return {ReleaseOutcome::released, {}};
    if (answer->done() && answer->tag != "ROLLBACK") {
      return {ReleaseOutcome::failed,
              session.not_understood("COMMIT or ROLLBACK", *answer).value().message};
    }
    lease.state->mark_lost(env().now());
    return {ReleaseOutcome::not_owner, {}};
  }

  StoreResult<Answer> ask(const Statement& statement, const AcquireRequest& request,
                          bool with_key = false) {
    const std::string key(request.key);
    auto answer =
        session().call(statement, request.key, {&key, with_key ? std::size_t{1} : std::size_t{0}},
                       {.wait_until = request.deadline, .stop = request.stop});
    if (answer && answer->kind == Answer::Kind::session_over) {
      return tl::unexpected(to_grant(answer, session()).error());
    }
    return answer;
  }

  /// Nothing: the row does not exist.
  StoreResult<std::optional<Grant>> lock_row(const AcquireRequest& request, bool may_wait) {
    const auto begun = ask(begin, request);
    if (!begun) return tl::unexpected(begun.error());
    // Outside a transaction the row would be locked for the statement only.
    if (!begun->done()) return session().not_understood("BEGIN", *begun);
    const auto locked = ask(may_wait ? select_row : select_nowait, request, true);
    if (!locked) return tl::unexpected(locked.error());
    if (!locked->done() || locked->rows == 0) {
      if (auto ended = ask(rollback, request); !ended) return tl::unexpected(ended.error());
      if (locked->done()) return std::nullopt;
      return to_grant(locked, session());
    }
    auto numbered = to_grant(ask(next_number, request), session());
    // The row is locked until the transaction ends.
    if (!numbered || numbered->kind != Grant::Kind::granted) session().close();
    return numbered;
  }

  const Endpoint endpoint_;
  const Timeouts timeouts_;
  std::unique_ptr<Session> next_;                ///< for the next lock; null until needed
  std::vector<std::unique_ptr<Session>> spare_;  ///< without a transaction
  std::unordered_map<std::string, std::unique_ptr<Session>> held_;  ///< by token
};

const Registration postgres_row(with_known_hazards({
    .name = "postgres-row",
    .backend = "postgres",
    .summary =
        "SELECT ... FOR UPDATE on the key's row, in a transaction open as long as it is held",
    .acquire_commands = {"set_config lock_timeout (when it changes)", "BEGIN",
                         "SELECT ... FROM row WHERE key FOR UPDATE (NOWAIT without waiting)",
                         "nextval fencing", "ROLLBACK (if not granted)"},
    .release_commands = {"COMMIT"},
    .source = "PostgreSQL documentation, 13.3.2 \"Row-Level Locks\"",
    .libraries = {{"any", "every driver for PostgreSQL", "select ... for update in a transaction"}},
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .ends_with_connection = true,
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
