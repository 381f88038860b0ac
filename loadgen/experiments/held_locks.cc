#include "loadgen/experiments/held_locks.h"

#include <fmt/format.h>

#include <condition_variable>
#include <functional>
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

class BatchedLocks : public HeldLocks {
 public:
  BatchedLocks(const HeldLocksPlan& plan, RenewalFigures& figures)
      : plan_(plan), figures_(figures) {
    services_.provide<EnvSource>(
        std::make_shared<EnvSource>(EnvSource{[this] { return make_counting_env(figures_); }}));
    // Owned by the caller, which outlives it.
    services_.provide<StrategyObserver>(
        std::shared_ptr<StrategyObserver>(&figures_, [](StrategyObserver*) {}));
    for (int number = 0; number < kHolders; ++number) {
      holders_.push_back(std::make_unique<Holder>(*this, number));
    }
  }

  Done take(const std::stop_token& stop) override {
    const TimePoint begun = env_->now();
    Done taken = side_by_side([&](Holder& holder) { return holder.take(begun, stop); });
    if (!taken) return taken;
    if (!wait_until(*env_, begun + plan_.period(), stop)) return interrupted();
    return {};
  }

  void release() override {
    (void)side_by_side([&](Holder& holder) -> Done {
      release_all(*holder.strategy, holder.leases, figures_);
      return {};
    });
  }

 private:
  static constexpr int kHolders = 4;

  /// Holds every kHolders-th lock.
  struct Holder {
    Holder(BatchedLocks& all, int holder)
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

  /// The first failure, if any.
  Done side_by_side(const std::function<Done(Holder&)>& work) {
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

  const HeldLocksPlan& plan_;
  RenewalFigures& figures_;
  const std::unique_ptr<Env> env_ = make_system_env(std::random_device()());
  Services services_;
  std::vector<std::unique_ptr<Holder>> holders_;
};

class ThreadPerLock : public HeldLocks {
 public:
  ThreadPerLock(const HeldLocksPlan& plan, RenewalFigures& figures)
      : plan_(plan), figures_(figures) {}
  ThreadPerLock(const ThreadPerLock&) = delete;
  ThreadPerLock& operator=(const ThreadPerLock&) = delete;
  ~ThreadPerLock() override { ThreadPerLock::release(); }

  Done take(const std::stop_token& stop) override {
    const auto env = make_system_env(std::random_device()());
    const TimePoint begun = env->now();
    for (std::uint64_t number = 0; number < plan_.count; ++number) {
      if (!wait_until(*env, begun + plan_.taken_after(number), stop)) break;
      // No more connections at once than a server's accept queue holds.
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return number - held_ < 64 || !failure_.empty(); });
        if (!failure_.empty() || stop.stop_requested()) break;
      }
      auto thread =
          Thread::start([this, number](const std::stop_token&) { keep(number); },
                        [this](const std::string& why) { fail(why); }, Thread::Stack::small);
      if (!thread) return tl::unexpected(thread.error());
      threads_.push_back(std::move(*thread));
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ == threads_.size() || !failure_.empty(); });
    if (!failure_.empty()) return tl::unexpected(failure_);
    lock.unlock();
    if (!wait_until(*env, begun + plan_.period(), stop)) return interrupted();
    return {};
  }

  void release() override {
    over_.request_stop();
    threads_.clear();  // joins
  }

 private:
  /// Body of one lock's guard thread, from acquisition to release.
  void keep(std::uint64_t number) {
    const std::unique_ptr<Env> env = make_counting_env(figures_);
    Services services;
    const auto strategy =
        make_strategy(*find_strategy("redis-set-nx-lua"), {.endpoints = plan_.endpoints,
                                                           .options = plan_.options,
                                                           .env = *env,
                                                           .services = services,
                                                           .client = static_cast<int>(number)});
    std::vector<Lease> leases;
    const TimePoint asked_at = env->now();
    const Done taken = acquire(*strategy, *env, plan_, number, leases, {});
    if (!taken) return fail(taken.error());
    {
      const std::scoped_lock lock(mutex_);
      ++held_;
    }
    changed_.notify_all();
    const RenewalTiming timing;
    TimePoint due = asked_at + timing.first(plan_.ttl);
    while (env->wait(nullptr, due, over_.get_token()) != WaitResult::stopped) {
      const TimePoint sent_at = env->now();
      if (!renew(*strategy, *env, leases.front(), due, sent_at)) break;
      due = sent_at + timing.next(plan_.ttl);
    }
    release_all(*strategy, leases, figures_);
  }

  void fail(const std::string& why) {
    {
      const std::scoped_lock lock(mutex_);
      failure_ = why;
    }
    changed_.notify_all();
  }

  /// False if the lock is gone.
  bool renew(LockStrategy& strategy, Env& env, const Lease& lease, TimePoint due,
             TimePoint sent_at) {
    const TimePoint valid_until = lease.state->valid_until();
    RenewResult result = strategy.renew(lease, plan_.ttl);
    const TimePoint answered_at = env.now();
    RenewalReport report{.slip = sent_at - due,
                         .duration = answered_at - sent_at,
                         .margin = valid_until - answered_at,
                         .reason = std::move(result.reason)};
    if (result.outcome == RenewOutcome::renewed) report.outcome = RenewalAnswer::renewed;
    if (result.outcome == RenewOutcome::not_owner) report.outcome = RenewalAnswer::not_owner;
    figures_.on_renewal(report);
    return result.outcome != RenewOutcome::not_owner;
  }

  const HeldLocksPlan& plan_;
  RenewalFigures& figures_;
  std::stop_source over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t held_ = 0;
  std::string failure_;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<HeldLocks> hold_batched(const HeldLocksPlan& plan, RenewalFigures& figures) {
  return std::make_unique<BatchedLocks>(plan, figures);
}

std::unique_ptr<HeldLocks> hold_by_threads(const HeldLocksPlan& plan, RenewalFigures& figures) {
  return std::make_unique<ThreadPerLock>(plan, figures);
}

}  // namespace lockbench::loadgen
