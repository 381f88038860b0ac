#include <algorithm>

#include "tests/conformance/common/waiter.h"
#include "tests/conformance/etcd/etcd_test_store.h"

namespace lockbench::test {
namespace {

/// Twice the server's shortest lease, for tests that await its end; and a longer one to keep.
constexpr seconds kTtl{2}, kKeptTtl{5};

Duration delay_after_failure(const Descriptor& descriptor) {
  return descriptor.traits.lock_delay ? StrategyOptions().lock_delay : Duration();
}

/// The key of an absent client's place in the queue.
std::string foreign_place(const Descriptor& descriptor, const std::string& key) {
  return key + (descriptor.traits.shared ? "/queue/x/dead" : "/dead");
}

/// A waiter dies in the middle of the queue: the next one now stands behind the holder.
std::string dead_predecessor_hands_nothing_on(const Descriptor& descriptor) {
  HeldBench bench(kLongTtl, descriptor);
  EtcdProbe& probe = shared_etcd().probe();
  const etcd::LeaseId dead = probe.grant(60);
  probe.put(foreign_place(descriptor, bench.key()), dead);
  Waiter waiter(bench.client(), bench.key());
  if (!waiter.waits()) return "it did not wait";
  probe.revoke(dead);
  // Woken by that, it looks and waits for another key: its second watch.
  std::ptrdiff_t watches = 0;
  const auto looked = [&] {
    const auto sent = names_of(waiter.client().trace().take());
    watches += std::count(sent.begin(), sent.end(), "Watch");
    return watches >= 2 || waiter.is_done();
  };
  if (!comes_true(looked)) return "it does not look round";
  const bool too_soon = waiter.is_done();
  const ReleaseOutcome released = bench.holder->release(bench.held);
  const Lease gained = granted(waiter.join());
  if (too_soon) return "a dead client's successor was granted what another holds";
  if (released != ReleaseOutcome::released) return "cannot be released";
  return *gained.fencing > *bench.held.fencing ? "" : "the fencing number did not grow";
}

/// A stopped process does not keep its lease alive. The lock is not granted again before the holder
/// must have stopped believing in it and any lock-delay is over. When the holder resumes, it learns
/// of the loss.
std::string stopped_holder_is_succeeded_in_time(const Descriptor& descriptor) {
  Bench bench(descriptor);
  Bench other(descriptor, url_of(shared_store().server().port()));
  const auto holder = bench.client(), successor = other.client();
  const Lease held = granted(holder->try_once(bench.key(), kTtl));
  bench.worlds().hold_back_all();
  const TimePoint due = held.state->valid_until() + delay_after_failure(descriptor);
  const AcquireResult next = successor->acquire(bench.key(), patience());
  const TimePoint granted_at = successor->now();
  const bool believed = held.state->valid_at(granted_at);
  bench.worlds().let_go();
  if (!next.lease) return unexpected(next, AcquireOutcome::acquired);
  if (believed) return "granted while the holder's lease was valid";
  if (granted_at < due) return fmt::format("granted {:.0f} ms too soon", in_ms(due - granted_at));
  if (holder->release(held) != ReleaseOutcome::not_owner) return "it released another's lock";
  if (!other.is_held()) return "a late release freed another's lock";
  if (*next.lease->fencing <= *held.fencing) return "the fencing number did not grow";
  successor->give_back(*next.lease);
  (void)granted(holder->acquire(bench.key(), patience(), kTtl), "it does not go on: ");
  return {};
}

/// The server ends a working client's session.
std::string revoked_session_is_learned_of(const Descriptor& descriptor) {
  HeldBench bench(kKeptTtl, descriptor);
  EtcdProbe& probe = shared_etcd().probe();
  for (const auto& key : probe.keys()) {
    if (key.key().find("/guard/") == std::string::npos) probe.revoke(key.lease());
  }
  const auto known = [&] { return bench.held.state->lost_at().has_value(); };
  if (!comes_true(known)) {
    return "the lease does not know that it is lost";
  }
  if (bench.holder->release(bench.held) != ReleaseOutcome::not_owner)
    return "it released what was lost";
  const Lease again =
      granted(bench.holder->acquire(bench.key(), patience(), kKeptTtl), "it does not go on: ");
  if (*again.fencing <= *bench.held.fencing) return "the fencing number did not grow";
  return bench.holder->release(again) == ReleaseOutcome::released ? "" : "cannot be released";
}

/// A creation is given up because its answer is slow, but the server executes it; the removal
/// arrives later.
std::string late_creation_leaves_no_contender(const Descriptor& descriptor) {
  const auto line = proxy_to(shared_store().server().port());
  shared_store().clear();
  const StrategyOptions options{.command_timeout = milliseconds(500)};
  Bench bench(descriptor, url_of(line->port()), options);
  Bench other(descriptor, url_of(shared_store().server().port()));
  const auto client = bench.client(), successor = other.client();
  const Lease warm = granted(client->acquire(bench.key(), patience(), kTtl));
  client->release(warm);
  EtcdProbe& probe = shared_etcd().probe();
  const std::int64_t before = probe.revision();
  line->delay(2 * options.command_timeout);
  const AcquireResult lost = client->try_once(bench.key(), kTtl);
  if (lost.outcome != AcquireOutcome::unknown) return unexpected(lost, AcquireOutcome::unknown);
  line->heal();
  if (!comes_true([&] { return probe.revision() > before; })) return "the creation never arrives";
  // It may block others until its session ends at the latest. Another client asks: the impatient
  // one might lose another answer to a slow disk.
  const Lease next = granted(successor->acquire(bench.key(), patience(), kTtl), "afterwards: ");
  successor->release(next);
  return shared_store().becomes_empty() ? "" : "a contender is left in the queue";
}

bool has_session(const Descriptor& descriptor) {
  return descriptor.traits.expiry == Expiry::session;
}

}  // namespace

std::vector<Property> etcd_properties() {
  return {{"DeadPredecessorHandsNothingOn", has_session, dead_predecessor_hands_nothing_on},
          {"StoppedHolderIsSucceededInTime", always, stopped_holder_is_succeeded_in_time},
          {"RevokedSessionIsLearnedOf", has_session, revoked_session_is_learned_of},
          {"LateCreationLeavesNoContender", has_session, late_creation_leaves_no_contender}};
}

}  // namespace lockbench::test
