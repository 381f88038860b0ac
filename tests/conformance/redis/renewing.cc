#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {
namespace {

/// What a timer does to the lock of a successor.
std::string timer_looks_at_the_owner_as_declared(const Descriptor& descriptor) {
  constexpr seconds kTtl{40}, kSuccessors{10};
  const bool unaware = descriptor.traits.renew_check == OwnerCheck::none;
  Bench bench(descriptor, renewed_every(milliseconds(20)));
  const auto former = bench.client();
  const AcquireResult lost = former->try_once(bench.key(), kTtl);
  if (!lost.lease) return unexpected(lost, AcquireOutcome::acquired);
  if (!bench.worlds().await_any(1, patience())) return "it was never renewed";
  // So that none finds the moment in which nobody has the lock.
  bench.worlds().hold_back_all();
  RedisProbe probe(shared_store().server().port());
  Bench others(descriptor, shared_store().server().url(), unrenewed());
  others.number_clients_after(1000);
  const auto successor = others.client();
  if (!bench.worlds().await_held(patience())) return "it was renewed only once";
  probe.remove(bench.named_keys());
  const AcquireResult gained = successor->try_once(bench.key(), kSuccessors);
  bench.worlds().let_go();
  if (!gained.lease) return "the successor: " + unexpected(gained, AcquireOutcome::acquired);
  const auto prolonged = [&] {
    const auto left = probe.time_to_live(bench.key());
    return left && *left > kSuccessors;
  };
  (void)comes_true([&] { return lost.lease->state->lost_at() || prolonged(); });
  if (prolonged() != unaware) {
    return unaware ? "another's lock was not prolonged, as it is declared to be"
                   : "another's lock was prolonged";
  }
  if (!unaware && !lost.lease->state->lost_at()) return "the lease does not know that it is lost";
  return gained.lease->state->lost_at() ? "the holder's lease counts as lost" : "";
}

/// A release that overtakes a renewal does not wait for it, and the renewal changes nothing, but
/// for one that does not look whose lock it prolongs.
std::string release_overtakes_a_renewal(const Descriptor& descriptor) {
  constexpr seconds kTtl{40}, kSuccessors{10};
  const bool unaware = descriptor.traits.renew_check == OwnerCheck::none;
  Bench bench(descriptor, renewed_every(milliseconds(20)));
  Bench others(descriptor, shared_store().server().url(), unrenewed());
  others.number_clients_after(1000);
  const auto holder = bench.client();
  const auto witness = bench.client();
  const auto successor = others.client();
  const AcquireResult held = holder->try_once(bench.key(), kTtl);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  if (!bench.worlds().await_any(1, patience())) return "it was never renewed";
  bench.worlds().hold_back_all();
  if (!bench.worlds().await_held(patience())) return "it was renewed only once";
  const ReleaseOutcome released = holder->release(*held.lease);
  const TimePoint was_valid_until = held.lease->state->valid_until();
  const AcquireResult gained = successor->try_once(bench.key(), kSuccessors);
  const int renewals = bench.worlds().ended();
  bench.worlds().let_go();
  // What comes after it on the same thread shows that its answer has been dealt with.
  const AcquireResult later = witness->try_once(bench.key() + ":later", kTtl);
  const bool landed = bench.worlds().await_any(renewals + 2, patience());
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  if (!gained.lease) return "after the release: " + unexpected(gained, AcquireOutcome::acquired);
  if (!landed) return "the renewal never landed";
  if (held.lease->state->lost_at()) return "a released lease counts as lost";
  if (held.lease->state->valid_until() != was_valid_until) return "a released lease was prolonged";
  const auto left = RedisProbe(shared_store().server().port()).time_to_live(bench.key());
  const bool prolonged = left && *left > kSuccessors;
  if (prolonged != unaware) {
    return unaware ? "the successor's lock was not prolonged, as it is declared to be"
                   : "the successor's lock was prolonged";
  }
  return {};
}

bool can_be_renewed(const Descriptor& descriptor) { return descriptor.traits.renewable; }

}  // namespace

std::vector<Property> renewal_properties() {
  return {{"TimerLooksAtTheOwnerAsDeclared", can_be_renewed, timer_looks_at_the_owner_as_declared},
          {"ReleaseOvertakesARenewal", can_be_renewed, release_overtakes_a_renewal}};
}

}  // namespace lockbench::test
