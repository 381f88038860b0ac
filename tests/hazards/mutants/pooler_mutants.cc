// A lock in a PostgreSQL session that trusts its connection: behind a transaction pooler,
// statements of one connection run in any session.

#include "strategies/descriptor.h"
#include "strategies/postgres/client/endpoint.h"
#include "strategies/postgres/lock.h"
#include "strategies/waiting/retry.h"
#include "tests/support/around.h"

namespace lockbench::postgres {
namespace {

class Trusting : public LockStrategy {
 public:
  explicit Trusting(const Context& context)
      : env_(context.env),
        session_(endpoints_of(context, parse_endpoint).front(), context.options.command_timeout,
                 env_) {}

  StoreResult<void> connect() override { return session_.connect(); }

  AcquireResult acquire(const AcquireRequest& request) override {
    constexpr std::chrono::milliseconds kPause{20};
    return retry(request, env_, WaitPolicy::poll(kPause),
                 [&](const AcquireRequest& once) -> Attempt {
                   const auto granted = ask("SELECT pg_try_advisory_lock($1::bigint)", once.key);
                   if (!granted) return tl::unexpected(granted.error());
                   if (granted->value != "t") return std::nullopt;
                   return Lease{.key = std::string(once.key),
                                .state = std::make_shared<LeaseState>(TimePoint::max())};
                 });
  }

  ReleaseResult release(const Lease& lease) override {
    return to_release_result(
        ask("SELECT pg_advisory_unlock($1::bigint)", lease.key).map([](const Answer& answer) {
          return answer.value == "t";
        }));
  }

  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) override {
    return {RenewOutcome::unsupported, {}};
  }

 private:
  StoreResult<Answer> ask(const std::string& sql, std::string_view key) {
    const std::string number = std::to_string(advisory_number(key));
    return session_.call({.name = "advisory", .sql = sql, .how = Statement::How::once}, key,
                         {&number, 1});
  }

  Env& env_;
  Session session_;
};

const Registration registration(with_known_hazards(mutant("test-advisory-trusting", "postgres",
                                                          {.expiry = Expiry::session,
                                                           .release_check = OwnerCheck::atomic,
                                                           .ends_with_connection = true,
                                                           .reentrant = true,
                                                           .waiting_choices = {}},
                                                          construct<Trusting>)));

}  // namespace
}  // namespace lockbench::postgres
