#include <chrono>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

/// With the strategy's own waiting, whose last wait must be cut to end with the deadline.
std::string deadline_is_honoured(const Descriptor& descriptor) {
  constexpr milliseconds kDeadline{300};
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto waiter = bench.client();
  if (!holder->try_once(bench.key()).lease) return "the lock was not free";
  const TimePoint begin = waiter->now();
  const AcquireResult result = waiter->acquire(bench.key(), kDeadline);
  const Duration waited = waiter->now() - begin;
  if (result.outcome != AcquireOutcome::timed_out) {
    return unexpected(result, AcquireOutcome::timed_out);
  }
  if (result.lease) return "a lease although nothing was acquired";
  if (waited < kDeadline) return fmt::format("gave up after {:.1f} ms of 300", in_ms(waited));
  return {};
}

std::string one_attempt_without_patience(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto other = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const AcquireResult result = other->acquire(bench.key(), -seconds(1));
  if (result.outcome != AcquireOutcome::refused) return unexpected(result, AcquireOutcome::refused);
  return result.attempts == 1 ? "" : fmt::format("{} attempts, not one", result.attempts);
}

/// A waiter gets the lock once its holder has released it.
std::string waiter_gets_its_turn(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  holder->release(*held.lease);
  const AcquireResult& result = waiter.join();
  if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
  if (result.attempts == 0) return "granted without an attempt";
  return bench.is_held() ? "" : "granted, but a stranger gets it too";
}

/// Nothing but the stop can end the wait before its deadline.
std::string stop_ends_the_wait_by(const Descriptor& descriptor, const StrategyOptions& options) {
  Bench bench(descriptor, options);
  const auto holder = bench.client();
  if (!holder->try_once(bench.key()).lease) return "the lock was not free";
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  waiter.stop();
  const AcquireResult& result = waiter.join();
  return result.outcome == AcquireOutcome::abandoned
             ? ""
             : unexpected(result, AcquireOutcome::abandoned);
}

std::string stop_ends_the_wait(const Descriptor& descriptor) {
  return stop_ends_the_wait_by(descriptor,
                               waiting_by(descriptor, WaitPolicy::poll(std::chrono::hours(1))));
}

std::string stop_ends_listening(const Descriptor& descriptor) {
  return stop_ends_the_wait_by(descriptor, notified());
}

}  // namespace

std::vector<Property> waiting_properties() {
  return {{"DeadlineIsHonoured", excludes, deadline_is_honoured},
          {"OneAttemptWithoutPatience", excludes, one_attempt_without_patience},
          {"WaiterGetsItsTurn", excludes, waiter_gets_its_turn},
          {"StopEndsTheWait", excludes, stop_ends_the_wait},
          {"StopEndsListening", can_notify, stop_ends_listening}};
}

}  // namespace lockbench::test
