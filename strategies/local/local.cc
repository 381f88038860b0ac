#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

#include "strategies/fair_queue.h"
#include "strategies/registry.h"

namespace lockbench {
namespace {

/// The locks of the process, one per key. Every grant has a number, which identifies the holder on
/// release.
struct LockTable {
  struct Lock {
    FairQueue queue{1};
    std::atomic<std::uint64_t> holder{0};  ///< 0: none
  };

  Lock& of(const std::string& key) {
    const std::scoped_lock guard(mutex);
    return locks[key];
  }

  std::mutex mutex;
  std::unordered_map<std::string, Lock> locks;
  std::atomic<std::uint64_t> last_grant{0};
};

/// A mutex per key in the process, with deadlines.
class LocalMutex : public LockStrategy {
 public:
  explicit LocalMutex(const Context& context)
      : env_(context.env), table_(context.services.get<LockTable>()) {}

  StoreResult<void> connect() override { return {}; }

  AcquireResult acquire(const AcquireRequest& request) override {
    const std::string key(request.key);
    LockTable::Lock& lock = table_.of(key);
    if (!granted_) granted_ = env_.make_event();
    const bool waits = request.deadline > env_.now();
    const WaitResult waited = lock.queue.take(env_, *granted_, request.deadline, request.stop);
    if (waited != WaitResult::signalled) {
      const bool stopped = waited == WaitResult::stopped;
      return {.outcome = !waits    ? AcquireOutcome::refused
                         : stopped ? AcquireOutcome::abandoned
                                   : AcquireOutcome::timed_out,
              .attempts = 1};
    }
    lock.holder = ++table_.last_grant;
    return {.outcome = AcquireOutcome::acquired,
            .lease = Lease{.key = key,
                           .token = std::to_string(lock.holder),
                           .state = std::make_shared<LeaseState>(TimePoint::max())},
            .attempts = 1};
  }

  ReleaseResult release(const Lease& lease) override {
    LockTable::Lock& lock = table_.of(lease.key);
    std::uint64_t grant = std::stoull(lease.token);
    if (!lock.holder.compare_exchange_strong(grant, 0)) return {ReleaseOutcome::not_owner, {}};
    lock.queue.give_back();
    return {ReleaseOutcome::released, {}};
  }

 private:
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
