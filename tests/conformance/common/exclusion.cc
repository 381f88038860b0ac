#include <barrier>
#include <future>

#include "tests/conformance/common/waiter.h"

namespace lockbench::test {
namespace {

constexpr int kThreads = 16;
constexpr int kSectionsEach = 6;

/// Pauses short enough for a test. A quorum's contenders keep their own pauses: they split votes
/// unless they spread out, the more so on slow machines.
StrategyOptions soon_again(const Descriptor& descriptor) {
  if (descriptor.traits.nodes > 1) return {};
  return waiting_by(descriptor, WaitPolicy::backoff(milliseconds(1), milliseconds(10)));
}

/// Many clients increment a counter that only the lock protects.
std::string count_in_a_crowd(const Descriptor& descriptor, const StrategyOptions& options) {
  Bench bench(descriptor, options);
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) clients.push_back(bench.client());
  std::atomic<int> sections = 0, counter = 0;
  std::barrier start(kThreads);
  const auto work = [&](Client& client) {
    start.arrive_and_wait();
    for (int i = 0; i < kSectionsEach; ++i) {
      const Lease held = granted(client.acquire(bench.key(), patience()));
      ++sections;
      // Two steps on purpose, so that others may run in between. Atomic only to make a lost update
      // no data race.
      const int read = counter.load(std::memory_order_relaxed);
      for (int others = 0; others < kThreads; ++others) std::this_thread::yield();
      counter.store(read + 1, std::memory_order_relaxed);
      client.give_back(held);
    }
  };
  std::vector<std::future<void>> working;
  working.reserve(kThreads);
  for (const auto& client : clients) {
    working.push_back(std::async(std::launch::async, work, std::ref(*client)));
  }
  std::string trouble;
  for (std::future<void>& one : working) {
    try {
      one.get();
    } catch (const Broken& broken) {
      trouble = broken.what();
    }
  }
  if (counter == sections) return trouble;
  return fmt::format("{} of {} updates were lost", sections - counter, sections.load());
}

std::string no_update_is_lost(const Descriptor& descriptor) {
  return count_in_a_crowd(descriptor, soon_again(descriptor));
}

/// Lost wake-ups would show too: a client would wait until the lock expires.
std::string no_update_is_lost_listening(const Descriptor& descriptor) {
  return count_in_a_crowd(descriptor, notified());
}

/// A control must let two clients in at once.
std::string updates_are_lost(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client(), two = bench.client();
  const Lease first = granted(one->try_once(bench.key()));
  return two->try_once(bench.key()).lease ? "" : "no update was lost";
}

/// Two clients have read the same number; then many add one, each again until its write counts.
std::string updates_are_counted(const Descriptor& descriptor) {
  constexpr int kMostTries = 10'000;
  Bench bench(descriptor);
  const auto one = bench.client(), two = bench.client();
  const Lease first = granted(one->try_once(bench.key())),
              second = granted(two->try_once(bench.key()));
  std::atomic<std::uint64_t> written = 0;
  const auto write = [&](Client& client, const Lease& seen) {
    const bool done = client.release(seen) == ReleaseOutcome::released;
    written += done ? 1 : 0;
    return done;
  };
  write(*two, second);
  write(*one, first);
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) clients.push_back(bench.client());
  {
    std::vector<std::future<void>> working;
    working.reserve(kThreads);
    for (const auto& client : clients) {
      working.push_back(std::async(std::launch::async, [&] {
        int left = kSectionsEach;
        for (int tries = 0; left > 0 && tries < kMostTries; ++tries) {
          if (write(*client, granted(client->try_once(bench.key())))) --left;
        }
      }));
    }
    for (std::future<void>& each : working) each.get();
  }
  if (written < kThreads * kSectionsEach) return "some updates never succeeded";
  const std::uint64_t number = granted(one->share(bench.key())).fencing.value_or(0);
  if (number == written) return {};
  return fmt::format("{} of {} updates were lost", written - number, written.load());
}

std::string keys_are_independent(const Descriptor& descriptor) {
  constexpr int kKeys = 5;
  Bench bench(descriptor, impatient(descriptor));
  const auto holder = bench.client(), other = bench.client();
  const auto key = [&](int i) { return fmt::format("{}:{}", bench.key(), i); };
  std::vector<Lease> leases;
  for (int i = 0; i < kKeys; ++i) {
    leases.push_back(granted(holder->try_once(key(i)), "another key: "));
    if (leases.back().key != key(i)) return "the lease names another key";
  }
  // In an order that is neither first nor last come first served.
  for (const int i : {2, 0, 4, 1, 3}) {
    if (other->try_once(key(i)).lease) return fmt::format("key {} was granted twice", i);
    holder->give_back(leases[static_cast<std::size_t>(i)]);
    const Lease next =
        granted(other->try_once(key(i)), fmt::format("key {} was released, yet ", i));
  }
  return {};
}

std::string reentry_as_declared(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  const Lease first = granted(client->try_once(bench.key()));
  const AcquireResult again = client->try_once(bench.key());
  if (!descriptor.traits.reentrant) {
    return again.outcome == AcquireOutcome::refused
               ? std::string()
               : "re-entry: " + unexpected(again, AcquireOutcome::refused);
  }
  const Lease second = granted(again, "re-entry: ");
  client->release(second);
  if (!bench.is_held()) return "one release of two freed the lock";
  client->release(first);
  return bench.is_held() ? "two releases of two did not free the lock" : "";
}

std::string fencing_as_declared(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto one = bench.client(), two = bench.client();
  std::uint64_t last = 0;
  for (Client* client : {one.get(), two.get(), two.get(), one.get()}) {
    const Lease result = granted(client->try_once(bench.key()));
    if (result.fencing.has_value() != descriptor.traits.fencing) {
      return "a fencing number is there if and only if it is not declared";
    }
    if (descriptor.traits.fencing && *result.fencing <= last) {
      return fmt::format("fencing number {} came after {}", *result.fencing, last);
    }
    last = result.fencing.value_or(0);
    client->release(result);
  }
  return {};
}

/// A semaphore lets in as many as there are permits, and the next one when any of them leaves.
std::string as_many_are_inside_as_permitted(const Descriptor& descriptor) {
  constexpr std::size_t kPermits = 3;
  StrategyOptions options = impatient(descriptor);
  options.permits = kPermits;
  Bench bench(descriptor, options);
  std::vector<std::unique_ptr<Client>> holders;
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < kPermits; ++i) {
    holders.push_back(bench.client());
    leases.push_back(granted(holders.back()->try_once(bench.key()), "a permit: "));
  }
  const auto stranger = bench.client();
  if (stranger->try_once(bench.key()).lease) return "more are inside than permitted";
  for (const std::size_t leaves : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
    Waiter waiter(bench.client(), bench.key());
    if (!waiter.waits()) return "it did not wait";
    holders[leaves]->give_back(leases[leaves]);
    (void)granted(waiter.join(), "after a release: ");
    if (stranger->try_once(bench.key()).lease) return "more are inside than permitted";
    waiter.client().give_back(*waiter.join().lease);
    leases[leaves] = granted(holders[leaves]->try_once(bench.key()), "again: ");
  }
  return {};
}

/// Whether each lock of a client can be released alone.
bool releases_one_by_one(const Descriptor& descriptor) {
  return excludes(descriptor) && !descriptor.traits.released_together;
}

bool excludes_listening(const Descriptor& descriptor) {
  return excludes(descriptor) && can_notify(descriptor);
}
bool is_control(const Descriptor& descriptor) { return !excludes(descriptor); }
bool has_permits(const Descriptor& descriptor) { return descriptor.traits.permits; }

bool takes_no_lock(const Descriptor& descriptor) { return descriptor.traits.updates; }

}  // namespace

std::vector<Property> update_properties() {
  return {{"UpdatesAreCounted", takes_no_lock, updates_are_counted}};
}

std::vector<Property> exclusion_properties() {
  return {{"NoUpdateIsLost", excludes, no_update_is_lost},
          {"NoUpdateIsLostListening", excludes_listening, no_update_is_lost_listening},
          {"UpdatesAreLost", is_control, updates_are_lost},
          {"AsManyAreInsideAsPermitted", has_permits, as_many_are_inside_as_permitted},
          {"KeysAreIndependent", releases_one_by_one, keys_are_independent},
          {"ReentryAsDeclared", excludes, reentry_as_declared},
          {"FencingAsDeclared", excludes, fencing_as_declared}};
}

}  // namespace lockbench::test
