#include "strategies/redis/client/answers.h"
#include "strategies/redis/scripts.h"
#include "tests/support/flawed_lock.h"

namespace lockbench::test {
namespace {

/// The textbook lock with a broken renewal.
struct TimerRenewsUnchecked : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, lease.token);
  }
  std::optional<redis::RenewalProtocol> renewal_protocol() const override {
    return redis::RenewalProtocol{};
  }
};

struct ForgetsToRenew : Flawed {
  explicit ForgetsToRenew(Context context) : Flawed((context.renewing.reset(), context)) {}
};

struct KeepsRenewing : Flawed {
  using Flawed::Flawed;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = sound().acquire(request);
    if (result.lease) kept_ = std::exchange(result.lease->renewal, nullptr);
    return result;
  }
  std::shared_ptr<Renewal> kept_;
};

struct ForgetsToTell : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease& lease) override {
    return to_release_result(
        redis().call(redis::kFlag, redis::scripts::release_if_token, {lease.key}, {lease.token}));
  }
};

struct TellsInVain : Flawed {
  using Flawed::Flawed;
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = sound().release(lease);
    if (result.outcome == ReleaseOutcome::not_owner) {
      (void)redis().call({"PUBLISH", lease.key + ":released", "released"});
    }
    return result;
  }
};

/// Keeps the wake-up of a client that leaves without the lock.
struct HoardsWakeups : Flawed {
  explicit HoardsWakeups(const Context& context)
      : Flawed(context), context_(context), woken_(context.env.make_event()) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = try_once(request);
    if (result.outcome != AcquireOutcome::refused) return result;
    redis::NotificationHub::Waiter waiter(hub(), std::string(request.key) + ":released", *woken_);
    bool asked_listening = false;
    while (env().now() < request.deadline) {
      if (asked_listening) env().wait(woken_.get(), request.deadline, request.stop);
      asked_listening = true;
      result = try_once(request);
      if (result.outcome != AcquireOutcome::refused) break;
    }
    waiter.satisfied();
    if (result.outcome == AcquireOutcome::refused) result.outcome = AcquireOutcome::timed_out;
    return result;
  }

 private:
  redis::NotificationHub& hub() {
    using redis::ConnectionFactory, redis::NotificationHub;
    return context_.services.get_or_make<NotificationHub>([&] {
      auto& factory =
          context_.services.get_or_make<ConnectionFactory>(redis::make_connection_factory);
      return std::make_shared<NotificationHub>(
          redis::parse_endpoint(context_.endpoints.find("redis")->second.front()).value(),
          context_.options.command_timeout, factory, make_service_env(context_.services));
    });
  }

  const Context context_;
  std::unique_ptr<Event> woken_;
};

}  // namespace

Factories locks_broken_towards_the_services() {
  return {
      {Flaw::timer_renews_unchecked, construct<TimerRenewsUnchecked>},
      {Flaw::forgets_to_renew, construct<ForgetsToRenew>},
      {Flaw::keeps_renewing, construct<KeepsRenewing>},
      {Flaw::forgets_to_tell, construct<ForgetsToTell>},
      {Flaw::tells_in_vain, construct<TellsInVain>},
      {Flaw::hoards_wakeups, construct<HoardsWakeups>},
  };
}

}  // namespace lockbench::test
