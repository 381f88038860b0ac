#include <algorithm>
#include <map>
#include <set>

#include "strategies/endpoints.h"
#include "strategies/postgres/client/names.h"
#include "strategies/postgres/lock.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

/// Bounds the failed requests that are remembered; locks beyond that end with their session.
constexpr std::size_t kMaxDoubts = 1024;

const Statement lock{.name = "pg_advisory_lock",
                     .sql = "SELECT nextval('fencing') FROM pg_advisory_lock($1::bigint)",
                     .waits = true};
const Statement try_lock{.name = "pg_try_advisory_lock",
                         .sql =
                             "SELECT nextval('fencing') FROM "
                             "pg_try_advisory_lock($1::bigint) AS granted WHERE granted"};
const Statement release_lock{.name = "pg_advisory_unlock",
                             .sql = "SELECT pg_advisory_unlock($1::bigint)"};

/// pg_advisory_lock on the client's session: waits at the server, first come first served, and ends
/// with the session. The statement reads from the function that takes the lock, so the fencing
/// number is drawn while the lock is held.
class Advisory : public QueueLock {
 public:
  explicit Advisory(const Context& context)
      : QueueLock(context),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.command_timeout,
                 env()) {}

  StoreResult<void> connect() override { return session_.connect(); }

  ReleaseResult release(const Lease& lease) override {
    // The server does not distinguish the leases of one session.
    const bool held = held_.erase(lease.state) > 0 && !lease.state->lost_at();
    if (!held) return {ReleaseOutcome::not_owner, {}};
    const auto answer = unlock(lease.key);
    if (!answer) return {ReleaseOutcome::failed, answer.error().message};
    session_.unbind(lease.state);
    settle_doubts(lease.key);
    if (answer->done() && answer->value == "t") return {ReleaseOutcome::released, {}};
    lease.state->mark_lost(env().now());
    return {ReleaseOutcome::not_owner, {}};
  }

 protected:
  Session& session() override { return session_; }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    const std::string number = std::to_string(advisory_number(request.key));
    const auto answer = session_.call(may_wait ? lock : try_lock, request.key, {&number, 1},
                                      {.wait_until = request.deadline, .stop = request.stop});
    const bool in_error = answer ? answer->kind == Answer::Kind::cancelled
                                 : answer.error().kind == StoreError::Kind::rejected;
    if (in_error) disown(request.key);
    return to_grant(answer, session_);
  }

  void granted(const Lease& lease) override {
    session_.bind(lease.state);
    held_.emplace(lease.state, advisory_number(lease.key));
  }

 private:
  StoreResult<Answer> unlock(std::string_view key) {
    const std::string number = std::to_string(advisory_number(key));
    return session_.call(release_lock, key, {&number, 1});
  }

  /// The lock may have been granted before its statement failed; it would outlive the failure.
  void disown(std::string_view key) {
    std::erase_if(held_, [](const auto& lease) { return lease.first->lost_at().has_value(); });
    if (held_.empty()) return session_.close();
    if (!is_held(key)) {
      (void)unlock(key);
    } else if (doubts_.size() < kMaxDoubts) {
      doubts_.insert(advisory_number(key));
    }
  }

  /// Releases what failed requests may have added to a held lock, once its last lease is released.
  void settle_doubts(std::string_view key) {
    if (is_held(key)) return;
    for (auto left = doubts_.erase(advisory_number(key)); left > 0; --left) (void)unlock(key);
  }

  bool is_held(std::string_view key) const {
    const std::int64_t number = advisory_number(key);
    return std::any_of(held_.begin(), held_.end(),
                       [&](const auto& lease) { return lease.second == number; });
  }

  Session session_;
  std::map<std::shared_ptr<LeaseState>, std::int64_t> held_;  ///< lock numbers by lease
  std::multiset<std::int64_t> doubts_;                        ///< lock numbers: see disown()
};

const Registration registration(Descriptor{
    .name = "postgres-advisory",
    .backend = "postgres",
    .summary = "pg_advisory_lock on the client's session, waited for in the server's queue",
    .acquire_commands = {"set_config lock_timeout (when it changes)",
                         "pg_advisory_lock hash(key), then nextval",
                         "pg_try_advisory_lock hash(key), then nextval (without waiting)"},
    .release_commands = {"pg_advisory_unlock hash(key)"},
    .source = "PostgreSQL documentation, 13.3.5 \"Advisory Locks\"",
    .typical = true,
    .libraries = {{"Java", "JDBC with one connection for each holder",
                   "select pg_advisory_lock(?)"},
                  {"Go", "pgx, or database/sql with one Conn for each holder",
                   "select pg_advisory_lock($1)"},
                  {"Python", "psycopg, django-pglock", "select pg_advisory_lock(%s)"},
                  {"JavaScript", "node-postgres with one client for each holder",
                   "select pg_advisory_lock($1)"}},
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .ends_with_connection = true,
               .reentrant = true,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards = join_hazards({{"transaction-timeout-idle", HazardOutcome::unavailable}},
                            {kSessionHazards}),
    .make = construct<Advisory>,
});

}  // namespace
}  // namespace lockbench::postgres
