#include <thread>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/redlock/own_properties.h"
#include "tests/conformance/redlock/quorum_store.h"

namespace lockbench::test {
namespace {

std::string restarted_node_is_used_again(const Descriptor& descriptor) {
  constexpr std::size_t kNode = 3;
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, impatient(descriptor));
  const auto client = bench.client();
  must(tested.node(kNode).kill_hard());
  for (int i = 0; i < 20; ++i) warm_up(*client, bench.key());
  must(tested.node(kNode).restart(false));
  RedisProbe& probe = tested.probe(kNode);
  const TimePoint limit = client->now() + seconds(5);
  bool used = false;
  while (!used && client->now() < limit) {
    const AcquireResult held = client->try_once(bench.key());
    if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
    // A vote that is not waited for may be on its way.
    std::this_thread::sleep_for(milliseconds(10));
    used = probe.exists(bench.key());
    client->release(*held.lease);
  }
  return used ? "" : "a node that came back is not asked";
}

/// Though the client has nothing more to say afterwards.
std::string release_arrives_over_a_new_connection(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  auto client = bench.client();
  const AcquireResult held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  for (const std::size_t node : {0U, 2U}) {
    tested.probe(node).ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  }
  const ReleaseOutcome released = client->release(*held.lease);
  client.reset();
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  return tested.becomes_empty() ? std::string()
                                : fmt::format("left behind: {}", fmt::join(tested.keys(), " "));
}

StrategyOptions renewed() {
  StrategyOptions options;
  options.renew = RenewPolicy{.kind = RenewPolicy::Kind::automatic};
  return options;
}

std::string majority_is_enough_to_renew(const Descriptor& descriptor) {
  constexpr milliseconds kTtl{600};
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, renewed());
  const auto holder = bench.client();
  const auto contender = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), kTtl);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  for (const std::size_t node : {1U, 4U}) must(tested.node(node).kill_hard());
  const AcquireResult late = contender->acquire(bench.key(), 3 * kTtl, kTtl);
  if (late.outcome != AcquireOutcome::timed_out) {
    return "within three TTLs: " + unexpected(late, AcquireOutcome::timed_out);
  }
  if (!held.lease->state->valid_at(holder->now())) return "the lease is not valid any more";
  if (holder->release(*held.lease) != ReleaseOutcome::released) return "cannot be released";
  return tested.becomes_empty() ? "" : "still held after its release";
}

std::string minority_is_not_enough_to_renew(const Descriptor& descriptor) {
  Bench bench(descriptor, renewed());
  auto& tested = dynamic_cast<QuorumStore&>(shared_store());
  const auto holder = bench.client();
  const AcquireResult held = holder->try_once(bench.key(), milliseconds(900));
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  for (const std::size_t node : {0U, 1U, 2U}) tested.probe(node).remove({bench.key()});
  if (!eventually([&] { return held.lease->state->lost_at().has_value(); }, seconds(5))) {
    return "the lease does not know that it is lost";
  }
  const RenewOutcome outcome = holder->lock().renew(*held.lease, seconds(1)).outcome;
  if (outcome != RenewOutcome::not_owner) return fmt::format("renew gave {}", name_of(outcome));
  const ReleaseOutcome released = holder->release(*held.lease);
  return released == ReleaseOutcome::not_owner ? std::string()
                                               : fmt::format("release gave {}", name_of(released));
}

}  // namespace

std::vector<Property> repair_properties() {
  return {{"RestartedNodeIsUsedAgain", is_quorum, restarted_node_is_used_again},
          {"ReleaseArrivesOverANewConnection", is_quorum, release_arrives_over_a_new_connection},
          {"MajorityIsEnoughToRenew", is_quorum, majority_is_enough_to_renew},
          {"MinorityIsNotEnoughToRenew", is_quorum, minority_is_not_enough_to_renew}};
}

}  // namespace lockbench::test
