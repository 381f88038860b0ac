#include <fmt/format.h>

#include "strategies/endpoints.h"
#include "strategies/postgres/lock.h"
#include "strategies/postgres/names.h"
#include "strategies/registry.h"

namespace lockbench::postgres {
namespace {

/// pg_advisory_lock on the client's session: waited for at the server, first come first served, and
/// gone with the session. The fencing number is drawn once the lock is held: the function that
/// takes it is what the statement reads from.
class Advisory : public QueueLock {
 public:
  explicit Advisory(const Context& context)
      : QueueLock(context),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.command_timeout,
                 env()) {}

  StoreResult<void> connect() override { return session_.connect(); }

  ReleaseResult release(const Lease& lease) override {
    if (lease.state->lost_at()) return {ReleaseOutcome::not_owner, {}};
    static const Statement unlock{.name = "pg_advisory_unlock",
                                  .sql = "SELECT pg_advisory_unlock($1::bigint)"};
    const std::string number = std::to_string(advisory_number(lease.key));
    const auto answer = session_.call(unlock, lease.key, {&number, 1});
    if (!answer) return {ReleaseOutcome::failed, answer.error().message};
    session_.unbind(lease.state);
    if (answer->done() && answer->value == "t") return {ReleaseOutcome::released, {}};
    lease.state->mark_lost(env().now());
    return {ReleaseOutcome::not_owner, {}};
  }

 protected:
  Session& session() override { return session_; }

  StoreResult<Grant> take(const AcquireRequest& request, bool may_wait) override {
    name_statements(schema_of_key(request.key));
    const std::string number = std::to_string(advisory_number(request.key));
    return to_grant(session_.call(may_wait ? lock_ : try_lock_, request.key, {&number, 1},
                                  {.wait_until = request.deadline, .stop = request.stop}),
                    session_);
  }

  void granted(const Lease& lease) override { session_.bind(lease.state); }

 private:
  void name_statements(std::string schema) {
    if (schema == schema_) return;
    lock_ = {.name = "pg_advisory_lock",
             .sql = fmt::format("SELECT nextval('{}.fencing') FROM pg_advisory_lock($1::bigint)",
                                schema),
             .waits = true};
    try_lock_ = {.name = "pg_try_advisory_lock",
                 .sql = fmt::format("SELECT nextval('{}.fencing') FROM "
                                    "pg_try_advisory_lock($1::bigint) AS granted WHERE granted",
                                    schema)};
    schema_ = std::move(schema);
  }

  Session session_;
  std::string schema_;  ///< of the statements
  Statement lock_, try_lock_;
};

const Registration registration(Descriptor{
    .name = "postgres-advisory",
    .backend = "postgres",
    .summary = "pg_advisory_lock on the client's session, waited for in the server's queue",
    .acquire_commands = {"set_config lock_timeout (when it changes)",
                         "pg_advisory_lock hash(key), then nextval",
                         "pg_try_advisory_lock hash(key), then nextval (without patience)"},
    .release_commands = {"pg_advisory_unlock hash(key)"},
    .source = "PostgreSQL documentation, 13.3.5 \"Advisory Locks\"",
    .traits = {.expiry = Expiry::session,
               .release_check = OwnerCheck::atomic,
               .reentrant = true,
               .fencing = true,
               .fair = true,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards = with_session_hazards({{"transaction-timeout-idle", HazardOutcome::unavailable}}),
    .make = construct<Advisory>,
});

}  // namespace
}  // namespace lockbench::postgres
