#include <algorithm>

#include "testbed/proxy/proxy.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

/// Twice the server's shortest lease, for one whose end is waited for; and for one that is kept.
constexpr seconds kTtl{2}, kKeptTtl{5};

Duration delay_after_failure(const Descriptor& descriptor) {
  return descriptor.traits.lock_delay ? StrategyOptions().lock_delay : Duration();
}

/// The name of a place in the queue, of a client that is not there.
std::string foreign_place(const Descriptor& descriptor, const std::string& key) {
  return key + (descriptor.traits.shared ? "/queue/x/dead" : "/dead");
}

/// Dies in the middle of the queue: who stood behind it now stands behind the holder.
std::string dead_predecessor_hands_nothing_on(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  EtcdProbe& probe = shared_etcd().probe();
  const etcd::LeaseId dead = probe.grant(60);
  probe.put(foreign_place(descriptor, bench.key()), dead);
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  probe.revoke(dead);
  // Woken by that, it looks, and waits for another: its second watch.
  std::ptrdiff_t watches = 0;
  const auto looked = [&] {
    const auto sent = names_of(waiter.client().trace().take());
    watches += std::count(sent.begin(), sent.end(), "Watch");
    return watches >= 2 || waiter.is_done();
  };
  if (!comes_true(looked)) return "it does not look round";
  const bool too_soon = waiter.is_done();
  const ReleaseOutcome released = holder->release(*held.lease);
  const AcquireResult& gained = waiter.join();
  if (!gained.lease) return unexpected(gained, AcquireOutcome::acquired);
  if (too_soon) return "a dead client's successor was granted what another holds";
  if (released != ReleaseOutcome::released) return "cannot be released";
  return *gained.lease->fencing > *held.lease->fencing ? "" : "the fencing number did not grow";
}

/// A process that stands still does not keep its lease alive. Nobody is granted the lock before it
/// must have stopped believing, and before any lock-delay is over; and when it goes on, it learns.
std::string stopped_holder_is_succeeded_in_time(const Descriptor& descriptor) {
  Bench bench(descriptor);
  Bench other(descriptor, url_of(shared_store().server().port()));
  const auto holder = bench.client();
  const auto successor = other.client();
  const AcquireResult held = holder->try_once(bench.key(), kTtl);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  bench.worlds().hold_back_all();
  const TimePoint due = held.lease->state->valid_until() + delay_after_failure(descriptor);
  const AcquireResult next = successor->acquire(bench.key(), patience());
  const TimePoint granted_at = successor->now();
  const bool believed = held.lease->state->valid_at(granted_at);
  bench.worlds().let_go();
  if (!next.lease) return unexpected(next, AcquireOutcome::acquired);
  if (believed) return "granted while the holder's lease was valid";
  if (granted_at < due) return fmt::format("granted {:.0f} ms too soon", in_ms(due - granted_at));
  if (holder->release(*held.lease) != ReleaseOutcome::not_owner)
    return "it released another's lock";
  if (!other.is_held()) return "a late release freed another's lock";
  if (*next.lease->fencing <= *held.lease->fencing) return "the fencing number did not grow";
  if (successor->release(*next.lease) != ReleaseOutcome::released) return "cannot be released";
  const AcquireResult again = holder->acquire(bench.key(), patience(), kTtl);
  return again.lease ? "" : "it does not go on: " + unexpected(again, AcquireOutcome::acquired);
}

/// The server ends the session of a client that works.
std::string revoked_session_is_learned_of(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), kKeptTtl);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  EtcdProbe& probe = shared_etcd().probe();
  for (const auto& key : probe.keys()) {
    if (key.key().find("/guard/") == std::string::npos) probe.revoke(key.lease());
  }
  const auto known = [&] { return held.lease->state->lost_at().has_value(); };
  if (!comes_true(known)) {
    return "the lease does not know that it is lost";
  }
  if (holder->release(*held.lease) != ReleaseOutcome::not_owner) return "it released what was lost";
  const AcquireResult again = holder->acquire(bench.key(), patience(), kKeptTtl);
  if (!again.lease) return "it does not go on: " + unexpected(again, AcquireOutcome::acquired);
  if (*again.lease->fencing <= *held.lease->fencing) return "the fencing number did not grow";
  return holder->release(*again.lease) == ReleaseOutcome::released ? "" : "cannot be released";
}

/// A creation that is given up for its slow answer, and carried out: it arrives, and so does that
/// it was given up, but later.
std::string late_creation_leaves_no_contender(const Descriptor& descriptor) {
  const auto pool = testbed::ProxyPool::start();
  if (!pool) return pool.error();
  const auto line = testbed::start_proxy(**pool, shared_store().server().port());
  if (!line) return line.error();
  shared_store().clear();
  StrategyOptions options;
  options.command_timeout = milliseconds(500);
  Bench bench(descriptor, url_of((*line)->port()), options);
  Bench other(descriptor, url_of(shared_store().server().port()));
  const auto client = bench.client();
  const auto successor = other.client();
  const AcquireResult warm = client->acquire(bench.key(), patience(), kTtl);
  if (!warm.lease) return unexpected(warm, AcquireOutcome::acquired);
  client->release(*warm.lease);
  EtcdProbe& probe = shared_etcd().probe();
  const std::int64_t before = probe.revision();
  (*line)->delay(2 * options.command_timeout);
  const AcquireResult lost = client->try_once(bench.key(), kTtl);
  if (lost.outcome != AcquireOutcome::unknown) return unexpected(lost, AcquireOutcome::unknown);
  (*line)->heal();
  if (!comes_true([&] { return probe.revision() > before; })) return "the creation never arrives";
  // Until its session is over at the latest it may stand in the way. Not asked by the client that
  // gives up so soon: a slow disk may cost it another answer.
  const AcquireResult next = successor->acquire(bench.key(), patience(), kTtl);
  if (!next.lease) return "afterwards: " + unexpected(next, AcquireOutcome::acquired);
  successor->release(*next.lease);
  return shared_store().becomes_empty() ? "" : "a contender is left in the queue";
}

bool always(const Descriptor& /*descriptor*/) { return true; }

}  // namespace

std::vector<Property> etcd_properties() {
  return {{"DeadPredecessorHandsNothingOn", always, dead_predecessor_hands_nothing_on},
          {"StoppedHolderIsSucceededInTime", always, stopped_holder_is_succeeded_in_time},
          {"RevokedSessionIsLearnedOf", always, revoked_session_is_learned_of},
          {"LateCreationLeavesNoContender", always, late_creation_leaves_no_contender}};
}

}  // namespace lockbench::test
