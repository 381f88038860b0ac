#include "tests/conformance/common/waiter.h"
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

std::string expect_empty(QuorumStore& tested) {
  return tested.becomes_empty() ? std::string()
                                : fmt::format("left behind: {}", fmt::join(tested.keys(), " "));
}

/// Refuses by an error, like a server without memory.
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
  const Lease held = granted(client->try_once(bench.key()), "with memory: ");
  client->give_back(held);
  return {};
}

/// All timeouts are long: only the stop can end the round.
std::string interrupt_leaves_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, StrategyOptions{.node_timeout = 2 * kPatience});
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
  HeldBench bench(kLongTtl, descriptor, tested);
  on(tested, kTwo, kKill);
  bench.holder->give_back(bench.held);
  if (std::string left = expect_empty(tested); !left.empty()) return left;

  const Lease again = granted(bench.holder->try_once(bench.key()));
  on(tested, {0, 4}, kKill);
  const ReleaseOutcome released = bench.holder->release(again);
  if (released != ReleaseOutcome::failed) return fmt::format("release gave {}", name_of(released));
  return expect_empty(tested);
}

}  // namespace

std::vector<Property> outage_properties() {
  return {{"RefusingMajorityGrantsNothing", is_quorum, refusing_majority_grants_nothing},
          {"InterruptLeavesNothing", is_quorum, interrupt_leaves_nothing},
          {"HolderGivesBackWhatItCan", is_quorum, holder_gives_back_what_it_can}};
}

}  // namespace lockbench::test
