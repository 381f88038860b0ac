#include "tests/conformance/common/bench.h"
#include "tests/conformance/redlock/quorum_store.h"

namespace lockbench::test {
namespace {

QuorumStore& tested() { return dynamic_cast<QuorumStore&>(shared_store()); }

/// Somebody else has the lock on these nodes.
void occupy(std::initializer_list<std::size_t> nodes, const std::string& key) {
  for (const std::size_t node : nodes) tested().probe(node).ask({"SET", key, "another's"});
}

/// Nodes on which this key is another's than the occupant's.
std::string ours(const std::string& key) {
  std::string found;
  for (std::size_t node = 0; node < kNodes; ++node) {
    RedisProbe& probe = tested().probe(node);
    if (probe.exists(key) && probe.get(key) != "another's") found += fmt::format(" {}", node);
  }
  return found;
}

/// A vote that is being taken back needs a moment.
std::string stays_ours(const std::string& key) {
  std::string left;
  const auto gone = [&] { return (left = ours(key)).empty(); };
  return comes_true(gone) ? "" : left;
}

std::string minority_grants_nothing(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  occupy({0, 2, 4}, bench.key());
  const AcquireResult result = client->try_once(bench.key());
  if (result.outcome != AcquireOutcome::refused) return unexpected(result, AcquireOutcome::refused);
  const std::string left = stays_ours(bench.key());
  return left.empty() ? left : "votes in vain are still on" + left;
}

/// Two nodes granted it, and one of them could not say so.
std::string votes_unheard_are_taken_back(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  if (const std::string left = stays_ours(bench.key()); !left.empty()) return "still on" + left;
  occupy({1, 2, 4}, bench.key());
  client->faults().drop_answer(1);
  const AcquireResult result = client->try_once(bench.key());
  if (result.lease) return "granted by a minority";
  const std::string left = stays_ours(bench.key());
  return left.empty() ? left : "a vote that nobody heard is still on" + left;
}

std::string validity_leaves_room_for_drift(const Descriptor& descriptor) {
  constexpr seconds kTtl{10};
  constexpr milliseconds kDrift{102};
  Bench bench(descriptor);
  const auto client = bench.client();
  client->faults().stop_the_clock();
  const TimePoint asked_at = client->now();
  const AcquireResult held = client->try_once(bench.key(), kTtl);
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const Duration valid_for = held.lease->state->valid_until() - asked_at;
  return valid_for <= kTtl - kDrift
             ? std::string()
             : fmt::format("leaves no room for drift: valid for {:.1f} ms", in_ms(valid_for));
}

}  // namespace

std::vector<Property> vote_properties() {
  return {{"MinorityGrantsNothing", is_quorum, minority_grants_nothing},
          {"VotesUnheardAreTakenBack", is_quorum, votes_unheard_are_taken_back},
          {"ValidityLeavesRoomForDrift", is_quorum, validity_leaves_room_for_drift}};
}

}  // namespace lockbench::test
