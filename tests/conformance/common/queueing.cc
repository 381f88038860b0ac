#include <algorithm>
#include <deque>

#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

std::string first_come_first_served(const Descriptor& descriptor) {
  constexpr int kClients = 8, kGivesUp = 4;
  HeldBench bench(kLongTtl, descriptor);
  const auto newcomer = bench.client();
  std::mutex mutex;
  std::vector<int> wanted, served;
  std::vector<std::uint64_t> fences;
  std::deque<Waiter> queue;
  bool all_wait = true;
  for (int i = 1; i <= kClients; ++i) {
    const auto take_turn = [&, i](Client& client, const AcquireResult& result) {
      if (!result.lease) return;
      {
        const std::scoped_lock lock(mutex);
        served.push_back(i);
        fences.push_back(result.lease->fencing.value_or(0));
      }
      client.release(*result.lease);
    };
    queue.emplace_back(bench.client(), bench.key(), patience(), kLongTtl, Mode::exclusive,
                       take_turn);
    all_wait &= queue.back().waits();
    if (waits_at_the_server(descriptor)) {
      all_wait &= comes_true([i] { return shared_store().waiting() >= i; });
    }
    if (i != kGivesUp) wanted.push_back(i);
  }
  // In the middle of the queue.
  queue[kGivesUp - 1].stop();
  queue[kGivesUp - 1].join();
  bench.holder->release(bench.held);
  const AcquireResult barged = newcomer->try_once(bench.key());
  if (barged.lease) newcomer->release(*barged.lease);
  for (Waiter& waiter : queue) waiter.join();
  if (!all_wait) return "somebody did not wait";
  if (served != wanted) {
    return fmt::format("came as {} and were served as {}", fmt::join(wanted, " "),
                       fmt::join(served, " "));
  }
  const bool grow = std::ranges::adjacent_find(fences, std::greater_equal<>()) == fences.end();
  return grow || !descriptor.traits.fencing ? "" : "fencing numbers do not grow";
}

/// A newcomer does not get a free lock while others wait.
std::string newcomers_do_not_barge(const Descriptor& descriptor) {
  constexpr int kRounds = 5;
  // Waiters report ten times during the TTL that they are alive, and may find the lock free then.
  constexpr seconds kTtl{20};
  Bench bench(descriptor);
  const auto holder = bench.client(), newcomer = bench.client();
  for (int round = 0; round < kRounds; ++round) {
    const Lease held = granted(holder->try_once(bench.key(), kTtl));
    Waiter waiter(bench.client(), bench.key(), patience(), kTtl);
    if (!waiter.waits()) return "it did not wait";
    shared_store().take_away({bench.key()});  // as if its TTL had ended
    const AcquireResult barged = newcomer->try_once(bench.key(), kTtl);
    if (barged.lease) newcomer->release(*barged.lease);
    const AcquireResult& gained = waiter.join();
    if (barged.lease) return "a newcomer barged in";
    waiter.client().release(granted(gained));
  }
  return {};
}

/// At the end of a session the server itself hands the lock on, in its own way.
bool is_fair_and_expires(const Descriptor& descriptor) {
  return is_fair(descriptor) && descriptor.traits.expiry == Expiry::ttl;
}

std::string sharers_are_together_and_others_alone(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client(), two = bench.client(), alone = bench.client();
  const Lease first = granted(one->share(bench.key()));
  const Lease second = granted(two->share(bench.key()), "beside a sharer: ");
  const auto refused = AcquireOutcome::refused;
  if (alone->try_once(bench.key()).outcome != refused) return "granted beside two sharers";
  one->release(first);
  if (alone->try_once(bench.key()).outcome != refused) return "granted beside a sharer";
  two->release(second);
  const Lease last = granted(alone->try_once(bench.key()), "after all sharers: ");
  if (one->share(bench.key()).outcome != refused) return "a sharer was let in to one who is alone";
  const bool modes = first.mode == Mode::shared && last.mode == Mode::exclusive;
  alone->release(last);
  return modes ? "" : "a lease has the wrong mode";
}

std::string sharers_do_not_overtake(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto sharer = bench.client(), late = bench.client();
  const Lease held = granted(sharer->share(bench.key()));
  Waiter waiter(bench.client(), bench.key());
  bool waits = waiter.waits();
  if (waits_at_the_server(descriptor)) {
    waits = comes_true([] { return shared_store().waiting() == 1; });
  }
  const AcquireResult overtaker = late->share(bench.key());
  if (overtaker.lease) late->release(*overtaker.lease);
  sharer->release(held);
  const AcquireResult& gained = waiter.join();
  if (!waits) return "it did not wait";
  if (overtaker.lease) return "a late sharer overtook one who waits to be alone";
  waiter.client().release(granted(gained));
  return {};
}

/// A waiter waits for a dead sharer until the end of that one's TTL, even if others shared the lock
/// later.
std::string sharers_expire_by_themselves(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed());
  const auto dead = bench.client(), later = bench.client(), alone = bench.client();
  const Lease lost = granted(dead->share(bench.key(), {}, kShortTtl));
  const Lease held = granted(later->share(bench.key()), "beside a sharer: ");
  later->release(held);
  const Lease gained = granted(alone->acquire(bench.key(), patience()), "after its TTL: ");
  const bool too_early = alone->now() < lost.state->valid_until();
  alone->release(gained);
  return too_early ? "granted while a sharer's lease was valid" : "";
}

bool can_share(const Descriptor& descriptor) { return descriptor.traits.shared; }
bool can_share_and_expires(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.expiry == Expiry::ttl;
}
bool can_share_fairly(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.fair;
}

/// With the strategy's own waiting policy, whose last wait must end with the deadline.
std::string deadline_is_honoured(const Descriptor& descriptor) {
  constexpr milliseconds kDeadline{300};
  Bench bench(descriptor);
  const auto holder = bench.client(), waiter = bench.client();
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
  HeldBench bench(kLongTtl, descriptor);
  const auto other = bench.client();
  const AcquireResult result = other->acquire(bench.key(), -seconds(1));
  if (result.outcome != AcquireOutcome::refused) return unexpected(result, AcquireOutcome::refused);
  return result.attempts == 1 ? "" : fmt::format("{} attempts, not one", result.attempts);
}

/// A waiter gets the lock once its holder has released it.
std::string waiter_gets_its_turn(const Descriptor& descriptor) {
  HeldBench bench(kLongTtl, descriptor);
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  bench.holder->release(bench.held);
  const AcquireResult& result = waiter.join();
  if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
  if (result.attempts == 0) return "granted without an attempt";
  return bench.is_held() ? "" : "granted, but a stranger gets it too";
}

/// Only the stop can end the wait before its deadline.
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
  return {{"FirstComeFirstServed", is_fair, first_come_first_served},
          {"NewcomersDoNotBarge", is_fair_and_expires, newcomers_do_not_barge},
          {"SharersAreTogetherAndOthersAlone", can_share, sharers_are_together_and_others_alone},
          {"SharersDoNotOvertake", can_share_fairly, sharers_do_not_overtake},
          {"SharersExpireByThemselves", can_share_and_expires, sharers_expire_by_themselves},
          {"DeadlineIsHonoured", excludes, deadline_is_honoured},
          {"OneAttemptWithoutPatience", excludes, one_attempt_without_patience},
          {"WaiterGetsItsTurn", excludes, waiter_gets_its_turn},
          {"StopEndsTheWait", excludes, stop_ends_the_wait},
          {"StopEndsListening", can_notify, stop_ends_listening}};
}

}  // namespace lockbench::test
