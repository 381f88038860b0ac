#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

/// Clients that come one after the other, while the lock is held, and take it in turn once it is
/// free. Remembers in which order they had it.
class Procession {
 public:
  explicit Procession(Bench& bench) : bench_(bench) {}

  /// False if it did not begin to wait.
  bool join(std::unique_ptr<Client> client, const std::stop_token& stop) {
    Client& came = *clients_.emplace_back(std::move(client));
    const int number = static_cast<int>(clients_.size());
    threads_.emplace_back([this, &came, number, stop] {
      const AcquireResult result = came.acquire(bench_.key(), patience(), kLongTtl, stop);
      ++gone_;
      if (!result.lease) return;
      {
        const std::scoped_lock lock(mutex_);
        order_.push_back(number);
        fences_.push_back(result.lease->fencing.value_or(0));
      }
      came.release(*result.lease);
    });
    if (!came.trace().await_waiting()) return false;
    return !waits_at_the_server(bench_.descriptor()) || await_queued(number);
  }

  /// Until the server has them all in its queue, but for those who have gone.
  bool await_queued(int number) const {
    return comes_true([&] {
      const int gone = gone_;
      return shared_store().waiting() >= number - gone;
    });
  }

  /// Until the client of that number has had it.
  void await_gone(int number) { threads_.at(static_cast<std::size_t>(number) - 1).join(); }
  void end() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  const std::vector<int>& order() const { return order_; }
  const std::vector<std::uint64_t>& fences() const { return fences_; }

 private:
  Bench& bench_;
  std::deque<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
  std::atomic<int> gone_ = 0;
  std::mutex mutex_;
  std::vector<int> order_;
  std::vector<std::uint64_t> fences_;
};

std::string first_come_first_served(const Descriptor& descriptor) {
  constexpr int kClients = 8, kGivesUp = 4;
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto newcomer = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  Procession procession(bench);
  bool all_wait = true;
  std::vector<int> wanted;
  std::stop_source giving_up;
  for (int i = 1; i <= kClients; ++i) {
    const bool stays = i != kGivesUp;
    all_wait &= procession.join(bench.client(), stays ? std::stop_token() : giving_up.get_token());
    if (stays) wanted.push_back(i);
  }
  // In the middle of the queue.
  giving_up.request_stop();
  procession.await_gone(kGivesUp);
  holder->release(*held.lease);
  const AcquireResult barged = newcomer->try_once(bench.key());
  if (barged.lease) newcomer->release(*barged.lease);
  procession.end();
  if (!all_wait) return "somebody did not wait";
  if (procession.order() != wanted) {
    return fmt::format("came as {} and were served as {}", fmt::join(wanted, " "),
                       fmt::join(procession.order(), " "));
  }
  const auto& fences = procession.fences();
  const bool grow = std::ranges::adjacent_find(fences, std::greater_equal<>()) == fences.end();
  return grow || !descriptor.traits.fencing ? "" : "fencing numbers do not grow";
}

/// While somebody waits and the lock is free, it is not a newcomer's.
std::string newcomers_do_not_barge(const Descriptor& descriptor) {
  constexpr int kRounds = 5;
  // A waiter gives a sign of life ten times in it, by which it may be the first to know.
  constexpr seconds kTtl{20};
  Bench bench(descriptor);
  const auto holder = bench.client();
  const auto newcomer = bench.client();
  for (int round = 0; round < kRounds; ++round) {
    const AcquireResult held = holder->try_once(bench.key(), kTtl);
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    Waiter waiter(bench.client(), bench.key(), patience(), kTtl);
    if (!waiter.waits()) return "it did not wait";
    shared_store().take_away({bench.key()});  // as if its TTL were over
    const AcquireResult barged = newcomer->try_once(bench.key(), kTtl);
    if (barged.lease) newcomer->release(*barged.lease);
    const AcquireResult& gained = waiter.join();
    if (barged.lease) return "a newcomer barged in";
    if (!gained.lease) return unexpected(gained, AcquireOutcome::acquired);
    waiter.client().release(*gained.lease);
  }
  return {};
}

bool is_fair(const Descriptor& descriptor) { return descriptor.traits.fair; }
/// At the end of a session the server itself hands the lock on; what its queue does is its own.
bool is_fair_and_expires(const Descriptor& descriptor) {
  return is_fair(descriptor) && descriptor.traits.expiry == Expiry::ttl;
}

}  // namespace

std::vector<Property> queue_properties() {
  return {{"FirstComeFirstServed", is_fair, first_come_first_served},
          {"NewcomersDoNotBarge", is_fair_and_expires, newcomers_do_not_barge}};
}

namespace {

AcquireResult ask(Client& client, const std::string& key, Mode mode, Duration patience = {},
                  Duration ttl = kLongTtl) {
  return client.lock().acquire(
      {.key = key, .ttl = ttl, .deadline = client.now() + patience, .mode = mode, .stop = {}});
}

std::string sharers_are_together_and_others_alone(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client();
  const auto two = bench.client();
  const auto alone = bench.client();
  const AcquireResult first = ask(*one, bench.key(), Mode::shared);
  const AcquireResult second = ask(*two, bench.key(), Mode::shared);
  if (!first.lease) return unexpected(first, AcquireOutcome::acquired);
  if (!second.lease) return "beside a sharer: " + unexpected(second, AcquireOutcome::acquired);
  const auto is_refused = [&](Client& client, Mode mode) {
    return ask(client, bench.key(), mode).outcome == AcquireOutcome::refused;
  };
  if (!is_refused(*alone, Mode::exclusive)) return "granted beside two sharers";
  one->release(*first.lease);
  if (!is_refused(*alone, Mode::exclusive)) return "granted beside a sharer";
  two->release(*second.lease);
  const AcquireResult last = ask(*alone, bench.key(), Mode::exclusive);
  if (!last.lease) return "after all sharers: " + unexpected(last, AcquireOutcome::acquired);
  if (!is_refused(*one, Mode::shared)) return "a sharer was let in to one who is alone";
  const bool modes = first.lease->mode == Mode::shared && last.lease->mode == Mode::exclusive;
  alone->release(*last.lease);
  return modes ? "" : "a lease has the wrong mode";
}

std::string sharers_do_not_overtake(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto sharer = bench.client();
  const auto waiter = bench.client();
  const auto late = bench.client();
  const AcquireResult held = ask(*sharer, bench.key(), Mode::shared);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  AcquireResult gained;
  std::thread waiting([&] { gained = ask(*waiter, bench.key(), Mode::exclusive, patience()); });
  bool waits = waiter->trace().await_waiting();
  if (waits_at_the_server(descriptor)) {
    waits = comes_true([] { return shared_store().waiting() == 1; });
  }
  const AcquireResult overtaker = ask(*late, bench.key(), Mode::shared);
  if (overtaker.lease) late->release(*overtaker.lease);
  sharer->release(*held.lease);
  waiting.join();
  if (!waits) return "it did not wait";
  if (overtaker.lease) return "a late sharer overtook one who waits to be alone";
  if (!gained.lease) return unexpected(gained, AcquireOutcome::acquired);
  waiter->release(*gained.lease);
  return {};
}

/// A dead sharer is waited for until the end of its own TTL, even if others shared the lock later.
std::string sharers_expire_by_themselves(const Descriptor& descriptor) {
  Bench bench(descriptor, unrenewed());
  const auto dead = bench.client();
  const auto later = bench.client();
  const auto alone = bench.client();
  const AcquireResult lost = ask(*dead, bench.key(), Mode::shared, {}, kShortTtl);
  if (!lost.lease) return unexpected(lost, AcquireOutcome::acquired);
  const AcquireResult held = ask(*later, bench.key(), Mode::shared);
  if (!held.lease) return "beside a sharer: " + unexpected(held, AcquireOutcome::acquired);
  later->release(*held.lease);
  const AcquireResult gained = ask(*alone, bench.key(), Mode::exclusive, patience());
  if (!gained.lease) return "after its TTL: " + unexpected(gained, AcquireOutcome::acquired);
  const bool too_early = alone->now() < lost.lease->state->valid_until();
  alone->release(*gained.lease);
  return too_early ? "granted while a sharer's lease was valid" : "";
}

bool can_share(const Descriptor& descriptor) { return descriptor.traits.shared; }
bool can_share_and_expires(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.expiry == Expiry::ttl;
}
bool can_share_fairly(const Descriptor& descriptor) {
  return can_share(descriptor) && descriptor.traits.fair;
}

}  // namespace

std::vector<Property> sharing_properties() {
  return {{"SharersAreTogetherAndOthersAlone", can_share, sharers_are_together_and_others_alone},
          {"SharersDoNotOvertake", can_share_fairly, sharers_do_not_overtake},
          {"SharersExpireByThemselves", can_share_and_expires, sharers_expire_by_themselves}};
}

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
