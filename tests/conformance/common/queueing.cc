#include <algorithm>
#include <atomic>
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

}  // namespace lockbench::test
