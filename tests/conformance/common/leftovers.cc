#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/conformance/common/bench.h"
#include "tests/support/fiber_lock.h"

namespace lockbench::test {
namespace {

/// Keys that the descriptor does not name, or that should be gone: if nothing is held, only a key
/// for fencing numbers may stay, or the record of a lease by observation.
std::string leftovers(const Bench& bench, TestStore& tested, bool held) {
  const std::vector<std::string> named = bench.named_keys();
  std::string found;
  int counters = bench.descriptor().traits.fencing ? 1 : 0;
  for (const std::string& key : tested.keys()) {
    const bool known = std::find(named.begin(), named.end(), key) != named.end();
    const bool may_stay =
        held || bench.descriptor().traits.observed || (key != bench.key() && counters-- > 0);
    if (!known || !may_stay) found += " " + key;
  }
  return found;
}

std::string nothing_stays_in_the_store_of(const Descriptor& descriptor,
                                          const StrategyOptions& options) {
  Bench bench(descriptor, options);
  TestStore& tested = shared_store();
  const auto holder = bench.client(), waiter = bench.client();
  if (!tested.keys().empty()) return "connecting leaves keys behind";
  const Lease held = granted(holder->try_once(bench.key()));
  if (!tested.exists(bench.key())) return "the lock's own key is not there while it is held";

  const AcquireResult late = waiter->acquire(bench.key(), milliseconds(20));
  if (late.lease) return unexpected(late, AcquireOutcome::timed_out);
  const std::string unnamed = leftovers(bench, tested, true);
  if (!unnamed.empty()) return "left in the store, named nowhere:" + unnamed;

  holder->release(held);
  if (const std::string left = leftovers(bench, tested, false); !left.empty()) {
    return "left in the store after a release:" + left;
  }
  return bench.is_held() ? "still held after its release" : "";
}

std::string nothing_stays_in_the_store(const Descriptor& descriptor) {
  return nothing_stays_in_the_store_of(descriptor, impatient(descriptor));
}

std::string nothing_stays_of_a_listener(const Descriptor& descriptor) {
  return nothing_stays_in_the_store_of(descriptor, notified());
}

/// Whether the protocol leaves the key without a TTL: the lock itself if the store does not end it,
/// and fencing numbers.
bool stays_as_declared(const std::string& key, const Bench& bench) {
  const Traits& traits = bench.descriptor().traits;
  const bool endless = traits.expiry == Expiry::none || traits.observed ||
                       traits.release_check == OwnerCheck::local_clock;
  const std::vector<std::string> named = bench.named_keys();
  return std::find(named.begin(), named.end(), key) != named.end() &&
         (key == bench.key() ? endless : traits.fencing);
}

/// While the lock is held and waited for, and after its release. The end of a run removes what the
/// descriptor names.
std::string nothing_undeclared_stays_for_ever(const Descriptor& descriptor) {
  Bench bench(descriptor, impatient(descriptor));
  TestStore& tested = shared_store();
  const auto holder = bench.client(), waiter = bench.client();
  const Lease held = granted(holder->try_once(bench.key()));
  waiter->acquire(bench.key(), milliseconds(20));
  std::vector<std::string> staying = tested.staying();
  holder->release(held);
  for (std::string& key : tested.staying()) staying.push_back(std::move(key));
  std::erase_if(staying, [&](const std::string& key) { return stays_as_declared(key, bench); });
  return staying.empty() ? "" : fmt::format("would stay for ever: {}", fmt::join(staying, " "));
}

std::size_t entries_in(const char* folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// This process's threads and open files, such as connections.
struct Belongings {
  std::size_t threads = entries_in("/proc/self/task");
  std::size_t files = entries_in("/proc/self/fd");
};

void use_and_destroy(const Descriptor& descriptor) {
  Bench bench(descriptor, can_notify(descriptor) ? notified() : impatient(descriptor));
  const auto holder = bench.client(), waiter = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  const AcquireResult late = waiter->acquire(bench.key(), milliseconds(20));
  // One lock is destroyed while it is held.
}

std::string nothing_stays_in_the_process(const Descriptor& descriptor) {
  TestStore& tested = shared_store();
  on_carrier([] {});  // starts the fibers' thread, which stays
  const int connections = tested.other_connections();
  const Belongings before;
  use_and_destroy(descriptor);
  Belongings after;
  int remaining = tested.other_connections();
  // The server and the kernel need a moment to notice ended connections and threads.
  const auto all_gone = [&] {
    after = Belongings();
    remaining = tested.other_connections();
    return after.threads <= before.threads && after.files <= before.files &&
           remaining <= connections;
  };
  if (comes_true(all_gone)) return {};
  return fmt::format("left behind: {} threads, {} files, {} connections",
                     static_cast<long>(after.threads) - static_cast<long>(before.threads),
                     static_cast<long>(after.files) - static_cast<long>(before.files),
                     remaining - connections);
}

}  // namespace

std::vector<Property> leftover_properties() {
  return {{"NothingStaysInTheStore", has_store, nothing_stays_in_the_store},
          {"NothingStaysOfAListener", can_notify, nothing_stays_of_a_listener},
          {"NothingUndeclaredStaysForEver", has_store, nothing_undeclared_stays_for_ever},
          {"NothingStaysInTheProcess", always, nothing_stays_in_the_process}};
}

}  // namespace lockbench::test
