#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "strategies/registry.h"

namespace lockbench {
namespace {

/// The locks of the process, one per key. A release grants the lock to the first waiter, which
/// already holds it when it wakes up. Every grant has a number, which identifies the holder on
/// release.
class LockTable {
 public:
  using Grant = std::uint64_t;
  static constexpr Grant kNotGranted = 0;

  struct Waiter {
    Event& event;
    Grant grant = kNotGranted;
  };

  /// If not granted, `waiter` is in the queue until its event is set or it leaves.
  Grant take_or_queue(const std::string& key, Waiter& waiter) {
    const std::scoped_lock guard(mutex_);
    Lock& lock = locks_[key];
    if (lock.holder == kNotGranted) return lock.holder = ++last_grant_;
    lock.waiters.push_back(&waiter);
    return kNotGranted;
  }

  /// Leaves the queue, unless the grant came first.
  Grant leave(const std::string& key, Waiter& waiter) {
    const std::scoped_lock guard(mutex_);
    if (waiter.grant == kNotGranted) locks_[key].waiters.remove(&waiter);
    return waiter.grant;
  }

  bool release(const std::string& key, Grant grant) {
    const std::scoped_lock guard(mutex_);
    Lock& lock = locks_[key];
    if (lock.holder != grant) return false;
    lock.holder = kNotGranted;
    if (lock.waiters.empty()) return true;
    Waiter& next = *lock.waiters.front();
    lock.waiters.pop_front();
    next.grant = lock.holder = ++last_grant_;
    next.event.set();
    return true;
  }

 private:
  struct Lock {
    Grant holder = kNotGranted;
    std::list<Waiter*> waiters;
  };

  std::mutex mutex_;
  Grant last_grant_ = kNotGranted;
  std::unordered_map<std::string, Lock> locks_;
};

/// A mutex per key in the process, with deadlines.
class LocalMutex : public LockStrategy {
 public:
  explicit LocalMutex(const Context& context)
      : env_(context.env), table_(context.services.get<LockTable>()) {}

  StoreResult<void> connect() override { return {}; }

  AcquireResult acquire(const AcquireRequest& request) override {
    const std::string key(request.key);
    if (!granted_) granted_ = env_.make_event();
    LockTable::Waiter waiter{*granted_};
    AcquireResult result;
    result.attempts = 1;
    result.outcome = take(key, request, waiter);
    if (result.outcome == AcquireOutcome::acquired) {
      result.lease = Lease{.key = key,
                           .token = std::to_string(waiter.grant),
                           .state = std::make_shared<LeaseState>(TimePoint::max())};
    }
    return result;
  }

  ReleaseResult release(const Lease& lease) override {
    const bool mine = table_.release(lease.key, std::stoull(lease.token));
    return {mine ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
  }

 private:
  /// Sets the grant in `waiter`.
  AcquireOutcome take(const std::string& key, const AcquireRequest& request,
                      LockTable::Waiter& waiter) {
    // Safe only if granted: then the waiter is not in the queue, where others write to it.
    if (const auto grant = table_.take_or_queue(key, waiter)) {
      waiter.grant = grant;
      return AcquireOutcome::acquired;
    }
    const bool waits = request.deadline > env_.now();
    const WaitResult waited =
        waits ? env_.wait(granted_.get(), request.deadline, request.stop) : WaitResult::timed_out;
    if (waited == WaitResult::signalled) return AcquireOutcome::acquired;
    if (table_.leave(key, waiter)) {
      // Granted between the end of the wait and leaving: consume the signal.
      env_.wait(granted_.get(), TimePoint::max(), {});
      return AcquireOutcome::acquired;
    }
    if (!waits) return AcquireOutcome::refused;
    return waited == WaitResult::stopped ? AcquireOutcome::abandoned : AcquireOutcome::timed_out;
  }

  Env& env_;
  LockTable& table_;
  std::unique_ptr<Event> granted_;  ///< made when first needed, where it is waited for
};

const Registration local_mutex(Descriptor{
    .name = "local-mutex",
    .backend = "local",
    .summary =
        "A mutex per key in this process, first come, first served: the control without a store",
    .source = "control",
    .traits = {.expiry = Expiry::none,
               .release_check = OwnerCheck::atomic,
               .one_process = true,
               .fair = true,
               .nodes = 0,
               .waiting = {.kind = WaitKind::queue},
               .waiting_choices = {}},
    .hazards = {{"several-processes", HazardOutcome::double_grant}},
    .make = construct<LocalMutex>,
});

/// No lock: a control that the audit must catch.
class None : public LockStrategy {
 public:
  explicit None(const Context&) {}

  StoreResult<void> connect() override { return {}; }

  AcquireResult acquire(const AcquireRequest& request) override {
    return {.outcome = AcquireOutcome::acquired,
            .lease = Lease{.key = std::string(request.key),
                           .mode = request.mode,
                           .state = std::make_shared<LeaseState>(TimePoint::max())},
            .attempts = 1};
  }

  ReleaseResult release(const Lease&) override { return {ReleaseOutcome::released, {}}; }
};

const Registration none(Descriptor{
    .name = "none",
    .backend = "local",
    .summary = "No lock: the control that must lose updates",
    .source = "control",
    .typical = true,
    .traits =
        {.expiry = Expiry::none, .promises_exclusion = false, .nodes = 0, .waiting_choices = {}},
    .hazards = {{"contention", HazardOutcome::lost_update}},
    .make = construct<None>,
});

}  // namespace
}  // namespace lockbench
