#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"

namespace lockbench::test {
namespace {

constexpr int kThreads = 16;
constexpr int kSectionsEach = 6;

struct Tally {
  int granted = 0;  ///< sections that were entered, and so increments that were made
  int counted = 0;
  std::string trouble;  ///< the first outcome that was not a grant, or a lock that was lost
};

/// Pauses short enough for a test. Contenders for a quorum split its votes unless they spread out,
/// and the more so the slower the machine: they keep to the pauses that are their own.
StrategyOptions soon_again(const Descriptor& descriptor) {
  if (descriptor.traits.nodes > 1) return {};
  return waiting_by(descriptor, WaitPolicy::backoff(milliseconds(1), milliseconds(10)));
}

/// Many clients increment a counter that nothing but the lock protects.
class CrowdedCounter {
 public:
  explicit CrowdedCounter(const Descriptor& descriptor)
      : CrowdedCounter(descriptor, soon_again(descriptor)) {}
  CrowdedCounter(const Descriptor& descriptor, const StrategyOptions& options)
      : bench_(descriptor, options) {}

  Tally run() {
    std::vector<std::unique_ptr<Client>> clients;
    clients.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) clients.push_back(bench_.client());
    std::vector<std::string> troubles(kThreads);
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        troubles[i] = work(*clients[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    Tally tally{.granted = granted_, .counted = counter_, .trouble = {}};
    for (const std::string& trouble : troubles) {
      if (tally.trouble.empty()) tally.trouble = trouble;
    }
    return tally;
  }

 private:
  std::string work(Client& client) {
    for (int i = 0; i < kSectionsEach; ++i) {
      const AcquireResult result = client.acquire(bench_.key(), patience());
      if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
      ++granted_;
      // Two steps on purpose, between which all others may run. Atomic only so that a lost update
      // is no data race.
      const int read = counter_.load(std::memory_order_relaxed);
      for (int others = 0; others < kThreads; ++others) std::this_thread::yield();
      counter_.store(read + 1, std::memory_order_relaxed);
      const ReleaseOutcome released = client.release(*result.lease);
      if (released != ReleaseOutcome::released) {
        return fmt::format("a holder's release gave {}", name_of(released));
      }
    }
    return {};
  }

  Bench bench_;
  std::atomic<int> granted_ = 0;
  std::atomic<int> counter_ = 0;
};

std::string expect_all_counted(const Tally& tally) {
  if (tally.counted != tally.granted) {
    return fmt::format("{} of {} updates were lost", tally.granted - tally.counted, tally.granted);
  }
  return tally.trouble;
}

std::string no_update_is_lost(const Descriptor& descriptor) {
  return expect_all_counted(CrowdedCounter(descriptor).run());
}

/// Nor are wake-ups, for which a client would wait until the lock expires.
std::string no_update_is_lost_listening(const Descriptor& descriptor) {
  return expect_all_counted(CrowdedCounter(descriptor, notified()).run());
}

/// A control must let two in at once.
std::string updates_are_lost(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client(), two = bench.client();
  const AcquireResult first = one->try_once(bench.key());
  if (!first.lease) return unexpected(first, AcquireOutcome::acquired);
  return two->try_once(bench.key()).lease ? "" : "no update was lost";
}

std::string keys_are_independent(const Descriptor& descriptor) {
  constexpr int kKeys = 5;
  Bench bench(descriptor, impatient(descriptor));
  const auto holder = bench.client();
  const auto other = bench.client();
  const auto key = [&](int i) { return fmt::format("{}:{}", bench.key(), i); };
  std::vector<Lease> leases;
  for (int i = 0; i < kKeys; ++i) {
    AcquireResult result = holder->try_once(key(i));
    if (!result.lease) return "second key: " + unexpected(result, AcquireOutcome::acquired);
    if (result.lease->key != key(i)) return "the lease names another key";
    leases.push_back(*std::move(result.lease));
  }
  // In an order that is neither first nor last come first served.
  for (const int i : {2, 0, 4, 1, 3}) {
    if (other->try_once(key(i)).lease) return fmt::format("key {} was granted twice", i);
    const ReleaseOutcome released = holder->release(leases[static_cast<std::size_t>(i)]);
    if (released != ReleaseOutcome::released) {
      return fmt::format("release of key {} gave {}", i, name_of(released));
    }
    const AcquireResult next = other->try_once(key(i));
    if (!next.lease)
      return fmt::format("key {} was released, yet ", i) +
             unexpected(next, AcquireOutcome::acquired);
  }
  return {};
}

std::string reentry_as_declared(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  const AcquireResult first = client->try_once(bench.key());
  if (!first.lease) return unexpected(first, AcquireOutcome::acquired);
  const AcquireResult second = client->try_once(bench.key());
  if (!descriptor.traits.reentrant) {
    return second.outcome == AcquireOutcome::refused
               ? std::string()
               : "re-entry: " + unexpected(second, AcquireOutcome::refused);
  }
  if (!second.lease) return "re-entry: " + unexpected(second, AcquireOutcome::acquired);
  client->release(*second.lease);
  if (!bench.is_held()) return "one release of two freed the lock";
  client->release(*first.lease);
  return bench.is_held() ? "two releases of two did not free the lock" : "";
}

std::string fencing_as_declared(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client();
  const auto two = bench.client();
  std::uint64_t last = 0;
  for (Client* client : {one.get(), two.get(), two.get(), one.get()}) {
    const AcquireResult result = client->try_once(bench.key());
    if (!result.lease) return unexpected(result, AcquireOutcome::acquired);
    if (result.lease->fencing.has_value() != descriptor.traits.fencing) {
      return "a fencing number is there if and only if it is not declared";
    }
    if (descriptor.traits.fencing && *result.lease->fencing <= last) {
      return fmt::format("fencing number {} came after {}", *result.lease->fencing, last);
    }
    last = result.lease->fencing.value_or(0);
    client->release(*result.lease);
  }
  return {};
}

bool excludes_listening(const Descriptor& descriptor) {
  return excludes(descriptor) && can_notify(descriptor);
}
bool is_control(const Descriptor& descriptor) { return !excludes(descriptor); }

}  // namespace

std::vector<Property> exclusion_properties() {
  return {{"NoUpdateIsLost", excludes, no_update_is_lost},
          {"NoUpdateIsLostListening", excludes_listening, no_update_is_lost_listening},
          {"UpdatesAreLost", is_control, updates_are_lost},
          {"KeysAreIndependent", excludes, keys_are_independent},
          {"ReentryAsDeclared", excludes, reentry_as_declared},
          {"FencingAsDeclared", excludes, fencing_as_declared}};
}

}  // namespace lockbench::test
