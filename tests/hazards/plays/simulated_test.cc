#include <gmock/gmock.h>

#include <set>

#include "hazards/simulated/venue.h"
#include "simulate/simulation.h"
#include "strategies/registry.h"
#include "tests/hazards/support/fixtures.h"

// Plays on simulated machines. verdicts_test.cc shows that they catch broken locks.

namespace lockbench::hazards::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// The whole matrix of the strategies that can be simulated: as the real one in tests/full/matrix,
/// it must be as declared, so both agree.
TEST(SimulatedMatrix, IsAsDeclared) {
  std::vector<Cell> cells;
  for (const Descriptor* strategy : all_strategies()) {
    if (strategy->name.starts_with("test-") || !simulate::why_not(*strategy).empty()) continue;
    for (const Scenario* scenario : all_scenarios()) {
      cells.push_back(make_cell(*scenario, *strategy));
    }
  }
  ASSERT_FALSE(cells.empty());
  constexpr std::uint64_t kSeed = 1;
  play_all([](const Cell& cell) { return play_simulated(*cell.scenario, *cell.strategy, kSeed); },
           cells, 2, [](const Cell&) {}, {});
  std::set<std::string_view> left_out;
  for (const Cell& cell : cells) {
    EXPECT_TRUE(!cell.failed && cell.agrees()) << description_of(cell);
    if (cell.observed != HazardOutcome::not_played) continue;
    left_out.insert(cell.scenario->name);
    EXPECT_THAT(cell.reason, StartsWith("not simulated: ")) << description_of(cell);
  }
  // Also in docs/hazards.md.
  EXPECT_THAT(left_out,
              ElementsAre("failover-sentinel", "reshard-holding", "shard-failover", "shard-lost"));
}

TEST(SimulatedPlays, AreTheSameForTheSameSeed) {
  const auto text = [](std::uint64_t seed) {
    const Cell cell =
        play_simulated(scenario("redlock-split-vote"), strategy("redlock-parallel"), seed);
    return description_of(cell) + std::to_string(cell.took.count());
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(SimulatedPlays, TakeTheirTimeOnTheirOwnClock) {
  const Cell cell = play_simulated(scenario("pause-holding"), strategy("redis-set-nx-lua"), 1);
  EXPECT_GE(cell.took, std::chrono::seconds(1)) << "two TTLs of 500 ms\n" << description_of(cell);
  EXPECT_THAT(description_of(cell), HasSubstr("holder is stopped"));
}

TEST(SimulatedPlays, AreOfStoresThatAreSimulated) {
  EXPECT_EQ(simulate::why_not(strategy("redlock")), "");
  EXPECT_EQ(simulate::why_not(strategy("memcached-add")), "");
  EXPECT_NE(simulate::why_not(strategy("local-mutex")), "");
  EXPECT_NE(simulate::why_not(strategy("redis-cas-retry")), "") << "it takes no lock";
}

}  // namespace
}  // namespace lockbench::hazards::test
