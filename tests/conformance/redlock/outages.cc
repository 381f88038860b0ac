#include <stop_token>
#include <thread>

#include "strategies/observer.h"
#include "tests/conformance/common/bench.h"
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

/// No question may take longer than a round, however many nodes are silent.
constexpr milliseconds kPerNode{200};
constexpr Duration kRound = kNodes * kPerNode;

StrategyOptions with_node_timeout(Duration timeout, bool skips = false) {
  StrategyOptions options;
  options.node_timeout = timeout;
  options.skip_failed_nodes = skips;
  return options;
}

std::string too_slow(TimePoint begin, Duration bound) {
  const Duration taken = BootClock::now() - begin;
  return taken <= bound ? std::string() : fmt::format("took {:.0f} ms", in_ms(taken));
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

/// So many sections in a row, within that time.
std::string works_without_a_minority(const Descriptor& descriptor, Step step, int count,
                                     Duration bound, bool skips = false) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(kPerNode, skips));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on(tested, kTwo, step);
  const TimePoint begin = client->now();
  std::string wrong = sections(*client, bench.key(), count);
  if (wrong.empty()) wrong = too_slow(begin, bound + kSlack);
  if (step == kFreeze) on(tested, kTwo, kThaw);
  return wrong.empty() ? expect_empty(tested) : wrong;
}

std::string minority_may_die(const Descriptor& descriptor) {
  return works_without_a_minority(descriptor, kKill, 100, 2 * kRound);
}

/// Each acquisition and each release may wait for both.
std::string minority_may_freeze(const Descriptor& descriptor) {
  constexpr int kSections = 6;  // beyond the answer timeout
  return works_without_a_minority(descriptor, kFreeze, kSections, kSections * 4 * kPerNode);
}

/// A hundred sections take 80 s if the silent are waited for in each.
std::string silent_nodes_can_be_skipped(const Descriptor& descriptor) {
  return works_without_a_minority(descriptor, kFreeze, 100, 2 * kRound, true);
}

std::string dead_majority_grants_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(kPerNode));
  const auto client = bench.client();
  on(tested, kThree, kKill);
  for (int i = 0; i < 3; ++i) {
    const TimePoint begin = client->now();
    const AcquireResult result = client->acquire(bench.key(), seconds(10));
    if (result.lease) return "granted without a majority";
    const bool fits =
        result.outcome == AcquireOutcome::failed || result.outcome == AcquireOutcome::unknown;
    if (!fits) return unexpected(result, AcquireOutcome::failed);
    if (std::string slow = too_slow(begin, kRound + kSlack); !slow.empty()) return slow;
  }
  // Who comes now finds three dead from the start.
  const auto late = bench.unconnected_client();
  if (late->connect()) return "connected without a majority";
  if (late->try_once(bench.key()).outcome != AcquireOutcome::failed) return "it did not fail";
  return expect_empty(tested);
}

std::string frozen_majority_grants_nothing(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(kPerNode));
  const auto client = bench.client();
  warm_up(*client, bench.key());
  on(tested, kThree, kFreeze);
  const TimePoint begin = client->now();
  const AcquireResult result = client->acquire(bench.key(), seconds(10));
  std::string slow = too_slow(begin, kRound + kSlack);
  on(tested, kThree, kThaw);
  if (result.outcome != AcquireOutcome::unknown) return unexpected(result, AcquireOutcome::unknown);
  if (!slow.empty()) return slow;
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
  const AcquireResult result = client->acquire(bench.key(), seconds(10));
  for (const std::size_t node : kThree) {
    tested.probe(node).ask({"CONFIG", "SET", "maxmemory", "0"});
  }
  if (result.outcome != AcquireOutcome::failed) return unexpected(result, AcquireOutcome::failed);
  if (result.reason.find("OOM") == std::string::npos) return "the reason is " + result.reason;
  if (std::string left = expect_empty(tested); !left.empty()) return left;
  return sections(*client, bench.key(), 1);
}

tl::expected<Duration, std::string> interrupted_round(const Descriptor& descriptor) {
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested, with_node_timeout(seconds(5)));
  auto client = bench.client();
  warm_up(*client, bench.key());
  on(tested, kThree, kFreeze);
  client->trace().take();
  std::stop_source source;
  AcquireResult result;
  TimePoint end;
  std::thread calling([&] {
    result = client->acquire(bench.key(), seconds(20), kLongTtl, source.get_token());
    end = client->now();
  });
  const bool sent = client->trace().await_command(seconds(5));
  const TimePoint stopped = client->now();
  source.request_stop();
  calling.join();
  client.reset();
  on(tested, kThree, kThaw);
  const auto wrong = [](std::string what) { return tl::unexpected(std::move(what)); };
  if (!sent) return wrong("it sent nothing");
  if (result.lease) return wrong("granted without a majority");
  if (std::string left = expect_empty(tested); !left.empty()) return wrong(std::move(left));
  return end - stopped;
}

std::string interrupt_leaves_nothing(const Descriptor& descriptor) {
  return one_ends_in_time([&] { return interrupted_round(descriptor); });
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

/// Whose votes are late, and how many there were at all.
class LateVotes : public StrategyObserver {
 public:
  void on_vote(int node, Vote vote, Duration /*taken*/, bool late) override {
    if (late && vote == Vote::granted && node == 2) late_on_two = true;
    if (!late) ++votes;
  }
  void on_round(bool /*split*/, std::optional<Duration> left) override { validity = left; }

  bool late_on_two = false;
  int votes = 0;
  std::optional<Duration> validity;
};

/// It held the lock's key all the time, and gives it back as the others do.
std::string late_answer_is_accounted_for(const Descriptor& descriptor) {
  const auto seen = std::make_shared<LateVotes>();
  QuorumStore& tested = breakable_store();
  Bench bench(descriptor, tested);
  bench.services().provide<StrategyObserver>(seen);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  client->try_once(bench.key() + ":other");  // reads what is late of the warm-up
  seen->late_on_two = false;
  must(tested.node(2).freeze());
  const AcquireResult held = client->try_once(bench.key());
  must(tested.node(2).thaw());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  if (!seen->validity || *seen->validity <= Duration::zero()) return "no validity was told";
  if (!eventually([&] { return tested.holding(bench.key()) == kNodes; })) {
    return "the late node never got the request";
  }
  const ReleaseOutcome released = client->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  // It is read when there is time, which is not each time.
  for (int i = 0; i < 100 && !seen->late_on_two; ++i) warm_up(*client, bench.key() + ":another");
  if (!seen->late_on_two) return "the late vote was not told";
  const bool freed = eventually([&] { return tested.holding(bench.key()) == 0; });
  return freed ? "" : "still held after the release";
}

}  // namespace

std::vector<Property> outage_properties() {
  return {{"MinorityMayDie", is_quorum, minority_may_die},
          {"MinorityMayFreeze", is_quorum, minority_may_freeze},
          {"SilentNodesCanBeSkipped", is_quorum, silent_nodes_can_be_skipped},
          {"DeadMajorityGrantsNothing", is_quorum, dead_majority_grants_nothing},
          {"FrozenMajorityGrantsNothing", is_quorum, frozen_majority_grants_nothing},
          {"RefusingMajorityGrantsNothing", is_quorum, refusing_majority_grants_nothing},
          {"InterruptLeavesNothing", is_quorum, interrupt_leaves_nothing},
          {"HolderGivesBackWhatItCan", is_quorum, holder_gives_back_what_it_can},
          {"LateAnswerIsAccountedFor", is_quorum, late_answer_is_accounted_for}};
}

}  // namespace lockbench::test
