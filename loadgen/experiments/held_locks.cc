#include "loadgen/experiments/held_locks.h"

#include <fmt/format.h>

#include <future>
#include <random>
#include <vector>

#include "strategies/registry.h"
#include "strategies/thread.h"

namespace lockbench::loadgen {
namespace {

using Done = tl::expected<void, std::string>;

std::unique_ptr<Env> make_counting_env(RenewalFigures& figures) {
  return std::make_unique<CountingEnv>(make_system_env(std::random_device()()),
                                       [&figures] { figures.on_command(); });
}

/// Its commands are not counted: they are no renewals.
void release_all(LockStrategy& strategy, std::vector<Lease>& leases, RenewalFigures& figures) {
  std::uint64_t lost = 0;
  for (Lease& lease : leases) {
    const bool known = lease.state->lost_at().has_value();
    const ReleaseResult released = strategy.release(lease);
    // A loss that was known before has been counted.
    if (released.outcome == ReleaseOutcome::not_owner && !known) ++lost;
  }
  leases.clear();
  figures.on_lost(lost);
}

Done acquire(LockStrategy& strategy, Env& env, const HeldLocksPlan& plan, std::uint64_t number,
             std::vector<Lease>& leases, const std::stop_token& stop) {
  const std::string key = plan.key(number);
  AcquireResult result = strategy.acquire(
      {.key = key, .ttl = plan.ttl, .deadline = env.now() + std::chrono::seconds(5), .stop = stop});
  if (!result.lease) {
    return tl::unexpected(fmt::format("lock {} of {} could not be acquired: {}", number + 1,
                                      plan.count,
                                      result.reason.empty() ? "it is taken" : result.reason));
  }
  leases.push_back(std::move(*result.lease));
  return {};
}

Done interrupted() { return tl::unexpected<std::string>("interrupted"); }

/// False: stopped.
bool wait_until(Env& env, TimePoint time, const std::stop_token& stop) {
  return env.wait(nullptr, time, stop) != WaitResult::stopped;
}

}  // namespace

results::Renewal RenewalFigures::renewal(double recorded) const {
  const Counts counts = recorder_.totals(Phase::measured);
  const auto timing = [&](Timing what) {
    return to_distribution(recorder_.histograms(Phase::measured)[what].snapshot());
  };
  return {.renewals = counts[Count::renewals],
          .failures = counts[Count::renewals_failed],
          .lost = recorder_.totals()[Count::renewals_lost],
          .commands_per_second = static_cast<double>(counts[Count::commands]) / recorded,
          .duration = timing(Timing::renewal_duration),
          .slip = timing(Timing::renewal_slip),
          .margin = timing(Timing::renewal_margin)};
}

/// Holds every kHolders-th lock.
struct HeldLocks::Holder {
  Holder(HeldLocks& all, int holder)
      : plan(all.plan_),
        number(holder),
        strategy(make_strategy(*find_strategy("redis-watchdog"), {.endpoints = plan.endpoints,
                                                                  .options = plan.options,
                                                                  .env = *env,
                                                                  .services = all.services_,
                                                                  .client = holder})) {}

  Done take(TimePoint begun, const std::stop_token& stop) {
    for (auto lock = static_cast<std::uint64_t>(number); lock < plan.count; lock += kHolders) {
      if (!wait_until(*env, begun + plan.taken_after(lock), stop)) return interrupted();
      if (auto got = acquire(*strategy, *env, plan, lock, leases, stop); !got) return got;
    }
    return {};
  }

  const HeldLocksPlan& plan;
  const int number;
  std::unique_ptr<Env> env = make_system_env(std::random_device()());
  std::unique_ptr<LockStrategy> strategy;
  std::vector<Lease> leases;
};

HeldLocks::HeldLocks(const HeldLocksPlan& plan, RenewalFigures& figures)
    : plan_(plan), figures_(figures), env_(make_system_env(std::random_device()())) {
  services_.provide<EnvSource>(
      std::make_shared<EnvSource>(EnvSource{[this] { return make_counting_env(figures_); }}));
  // Owned by the caller, which outlives it.
  services_.provide<StrategyObserver>(
      std::shared_ptr<StrategyObserver>(&figures_, [](StrategyObserver*) {}));
  for (int number = 0; number < kHolders; ++number) {
    holders_.push_back(std::make_unique<Holder>(*this, number));
  }
}

HeldLocks::~HeldLocks() = default;

Done HeldLocks::take(const std::stop_token& stop) {
  const TimePoint begun = env_->now();
  Done taken = side_by_side([&](Holder& holder) { return holder.take(begun, stop); });
  if (!taken) return taken;
  if (!wait_until(*env_, begun + plan_.period(), stop)) return interrupted();
  return {};
}

void HeldLocks::release() {
  (void)side_by_side([&](Holder& holder) -> Done {
    release_all(*holder.strategy, holder.leases, figures_);
    return {};
  });
}

Done HeldLocks::side_by_side(const std::function<Done(Holder&)>& work) {
  std::vector<std::future<Done>> begun;
  for (auto& holder : holders_) {
    begun.push_back(in_background([&work, &own = *holder] { return work(own); }));
  }
  Done all;
  for (auto& one : begun) {
    Done done = one.get();
    if (all && !done) all = std::move(done);
  }
  return all;
}

}  // namespace lockbench::loadgen
