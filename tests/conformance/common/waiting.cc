#include <optional>
#include <stop_token>
#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

std::string deadline_is_honoured_by(const Descriptor& descriptor, const StrategyOptions& options) {
  constexpr milliseconds kPatience{150};
  Bench bench(descriptor, options);
  const auto holder = bench.client();
  const auto waiter = bench.client();
  if (!holder->try_once(bench.key()).lease) return "the lock was not free";
  const TimePoint begin = waiter->now();
  const AcquireResult result = waiter->acquire(bench.key(), kPatience);
  const Duration waited = waiter->now() - begin;
  if (result.outcome != AcquireOutcome::timed_out) {
    return unexpected(result, AcquireOutcome::timed_out);
  }
  if (result.lease) return "a lease although nothing was acquired";
  if (waited < kPatience) return fmt::format("gave up after {:.1f} ms of 150", in_ms(waited));
  if (waited > kPatience + kSlack) return fmt::format("gave up after {:.0f} ms", in_ms(waited));
  return {};
}

/// With the strategy's own waiting, whose last wait must be cut to end with the deadline.
std::string deadline_is_honoured(const Descriptor& descriptor) {
  return deadline_is_honoured_by(descriptor, {});
}

std::string deadline_is_honoured_listening(const Descriptor& descriptor) {
  return deadline_is_honoured_by(descriptor, notified());
}

std::string one_attempt_without_patience(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto other = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const TimePoint begin = other->now();
  const AcquireResult result = other->acquire(bench.key(), -seconds(1));
  const Duration taken = other->now() - begin;
  if (result.outcome != AcquireOutcome::refused) return unexpected(result, AcquireOutcome::refused);
  if (result.attempts != 1) return fmt::format("{} attempts, not one", result.attempts);
  if (taken > kSlack) return fmt::format("one attempt took {:.0f} ms", in_ms(taken));
  return {};
}

/// A waiter gets the lock once its holder has released it.
std::string waiter_gets_its_turn(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto waiter = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  AcquireResult result;
  std::thread waiting([&] { result = waiter->acquire(bench.key(), seconds(10)); });
  const bool waited = waiter->trace().await_waiting(seconds(5));
  holder->release(*held.lease);
  waiting.join();
  if (!waited) return "it did not wait";
  if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
  if (result.attempts == 0) return "granted without an attempt";
  return bench.is_held() ? "" : "granted, but a stranger gets it too";
}

// Any wait that the stop does not end lasts until the deadline.
constexpr seconds kPatience{2};

tl::expected<Duration, std::string> stopped_wait(const Descriptor& descriptor,
                                                 const StrategyOptions& options) {
  Bench bench(descriptor, options);
  const auto holder = bench.client();
  const auto waiter = bench.client();
  const auto wrong = [](std::string what) { return tl::unexpected(std::move(what)); };
  if (!holder->try_once(bench.key()).lease) return wrong("the lock was not free");
  std::stop_source source;
  AcquireResult result;
  TimePoint end;
  std::thread waiting([&] {
    result = waiter->acquire(bench.key(), kPatience, kLongTtl, source.get_token());
    end = waiter->now();
  });
  const bool waited = waiter->trace().await_waiting(kPatience);
  const TimePoint stopped = BootClock::now();
  source.request_stop();
  waiting.join();
  if (!waited) return wrong("it did not wait");
  // There was no time left to be told that nothing of it stays: not each time.
  if (result.outcome == AcquireOutcome::unknown) return Duration::max();
  if (result.outcome != AcquireOutcome::abandoned) {
    return wrong(unexpected(result, AcquireOutcome::abandoned));
  }
  return end - stopped;
}

std::string stop_ends_the_wait_by(const Descriptor& descriptor, const StrategyOptions& options) {
  return one_ends_in_time([&] { return stopped_wait(descriptor, options); });
}

std::string stop_ends_the_wait(const Descriptor& descriptor) {
  return stop_ends_the_wait_by(descriptor, waiting_by(descriptor, WaitPolicy::poll(kPatience)));
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
          {"ListenerHonoursItsDeadline", can_notify, deadline_is_honoured_listening},
          {"StopEndsListening", can_notify, stop_ends_listening}};
}

}  // namespace lockbench::test
