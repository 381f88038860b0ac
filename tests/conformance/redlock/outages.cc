#include "tests/conformance/common/bench.h"
#include "tests/conformance/common/waiter.h"
#include "tests/conformance/redlock/own_properties.h"
#include "tests/conformance/redlock/quorum_store.h"

namespace lockbench::test {
namespace {

using Nodes = std::initializer_list<std::size_t>;
constexpr Nodes kTwo{1, 3};
constexpr Nodes kThree{0, 2, 4};

using Step = tl::expected<void, std::string> (testbed::Server::*)();

void on(QuorumStore& tested, Nodes nodes, Step step) {
  for (const std::size_t node : nodes) must((tested.node(node).*step)());
}

constexpr Step kKill = &testbed::Server::kill_hard;
constexpr Step kFreeze = &testbed::Server::freeze;
constexpr Step kThaw = &testbed::Server::thaw;

StrategyOptions with_node_timeout(Duration timeout) {
  StrategyOptions options;
  options.node_timeout = timeout;
  return options;
}

std::string expect_empty(QuorumStore& tested) {
  return tested.becomes_empty() ? std::string()
                                : fmt::format("left behind: {}", fmt::join(tested.keys(), " "));
}

/// Sections in a row, none of which may be refused.
std::string sections(Client& client, const std::string& key, int count) {
  for (int i = 0; i < count; ++i) {
    const AcquireResult held = client.try_once(key);
    if (!held.lease)
      return fmt::format("section {}: ", i) + unexpected(held, AcquireOutcome::acquired);
    const ReleaseResult released = client.lock().release(*held.lease);
    if (released.outcome != ReleaseOutcome::released) {
      return fmt::format("release {} gave {} {}", i, name_of(released.outcome), released.reason);
    }
  }
  return {};
}

std::string minority_may_die(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on(tested, kTwo, kKill);
  const std::string wrong = sections(*client, bench.key(), 20);
  return wrong.empty() ? expect_empty(tested) : wrong;
}

std::string dead_majority_grants_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  const auto client = bench.client();
  on(tested, kThree, kKill);
  for (int i = 0; i < 3; ++i) {
    const AcquireResult result = client->acquire(bench.key(), patience());
    if (result.lease) return "granted without a majority";
    const bool fits =
        result.outcome == AcquireOutcome::failed || result.outcome == AcquireOutcome::unknown;
    if (!fits) return unexpected(result, AcquireOutcome::failed);
  }
  // Who comes now finds three dead from the start.
  const auto late = bench.unconnected_client();
  if (late->connect()) return "connected without a majority";
  if (late->try_once(bench.key()).outcome != AcquireOutcome::failed) return "it did not fail";
  return expect_empty(tested);
}

std::string frozen_majority_grants_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(milliseconds(200)));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on(tested, kThree, kFreeze);
  const AcquireResult result = client->acquire(bench.key(), patience());
  on(tested, kThree, kThaw);
  if (result.outcome != AcquireOutcome::unknown) return unexpected(result, AcquireOutcome::unknown);
  return expect_empty(tested);
}

/// By an error, as a server does that has no memory left.
std::string refusing_majority_grants_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  const auto client = bench.client();
  for (const std::size_t node : kThree) {
    tested.probe(node).ask({"CONFIG", "SET", "maxmemory", "1"});
  }
  const AcquireResult result = client->acquire(bench.key(), patience());
  for (const std::size_t node : kThree) {
    tested.probe(node).ask({"CONFIG", "SET", "maxmemory", "0"});
  }
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  if (result.reason.find("OOM") == std::string::npos) return "the reason is " + result.reason;
  if (std::string left = expect_empty(tested); !left.empty()) return left;
  return sections(*client, bench.key(), 1);
}

/// Every time-out is far away: only the stop can end the round.
std::string interrupt_leaves_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(2 * kPatience));
  std::string wrong;
  {
    auto client = bench.client();
    warm_up(*client, bench.key());
    client->trace().take();
    on(tested, kThree, kFreeze);
    Waiter calling(std::move(client), bench.key());
    const bool sent = calling.client().trace().await_command();
    calling.stop();
    if (!comes_true([&] { return calling.is_done(); })) wrong = "the stop did not end it";
    if (!wrong.empty()) on(tested, kThree, kThaw);
    if (calling.join().lease) wrong = "granted without a majority";
    if (!sent) wrong = "it sent nothing";
  }
  on(tested, kThree, kThaw);
  return wrong.empty() ? expect_empty(tested) : wrong;
}

std::string holder_gives_back_what_it_can(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  const auto client = bench.client();
  AcquireResult held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  on(tested, kTwo, kKill);
  ReleaseOutcome released = client->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  if (std::string left = expect_empty(tested); !left.empty()) return left;

  held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  on(tested, {0, 4}, kKill);
  released = client->release(*held.lease);
  if (released != ReleaseOutcome::failed) return fmt::format("release gave {}", name_of(released));
  return expect_empty(tested);
}

}  // namespace

std::vector<Property> outage_properties() {
  return {{"MinorityMayDie", is_quorum, minority_may_die},
          {"DeadMajorityGrantsNothing", is_quorum, dead_majority_grants_nothing},
          {"FrozenMajorityGrantsNothing", is_quorum, frozen_majority_grants_nothing},
          {"RefusingMajorityGrantsNothing", is_quorum, refusing_majority_grants_nothing},
          {"InterruptLeavesNothing", is_quorum, interrupt_leaves_nothing},
          {"HolderGivesBackWhatItCan", is_quorum, holder_gives_back_what_it_can}};
}

}  // namespace lockbench::test
