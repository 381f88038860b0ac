#include "simulate/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/test_names.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Le;

std::string without_punctuation(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class Simulated : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Simulated, testing::ValuesIn(simulated()), without_punctuation);

TEST_P(Simulated, WorksWithoutFaults) {
  Plan plan = plan_for(GetParam());
  // Two attempts at once would be enough to break them, with or without faults.
  const bool flawed = GetParam().starts_with("redis-getset");
  const Outcome outcome = test::must(simulate(plan, 1));
  EXPECT_GT(outcome.sections, 500U);
  if (!flawed) {
    EXPECT_EQ(outcome.violations, 0U);
    EXPECT_EQ(outcome.lost, 0U);
  }
  EXPECT_EQ(outcome.outage, Duration::zero());
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_P(Simulated, IsTheSameEachTimeWithTheSameSeed) {
  Plan plan = plan_for(GetParam());
  plan.faults = every_fault();
  plan.regions = {test::must(find_region("eu"))};
  // Redlock waits for a node for less than a round trip between regions.
  if (!GetParam().starts_with("redlock")) plan.regions.push_back(test::must(find_region("us")));
  plan.pauses = {test::must(Pauses::parse("1%@exp(3s)")), test::must(Pauses::parse("10/h@5s"))};
  const Played first = played(plan, 7), other = played(plan, 8);
  EXPECT_THAT(first.trace, HasSubstr("is granted lock 0"));
  EXPECT_NE(first.trace, other.trace);
  // On another thread too.
  Played again;
  std::thread([&] { again = played(plan, 7); }).join();
  EXPECT_TRUE(first.trace == again.trace);
  EXPECT_EQ(first.outcome.violations, again.outcome.violations);
  EXPECT_EQ(first.outcome.acquired.sum, again.outcome.acquired.sum);
}

TEST(Simulation, EndsAfterSoManyEventsAndIsSummarisedAsARun) {
  Plan plan = plan_for("redis-queue");
  plan.summarises = true;
  plan.most_events = 5'000;
  const Outcome outcome = test::must(simulate(plan, 1));
  EXPECT_GT(outcome.simulated, 1s);
  EXPECT_LT(outcome.simulated, plan.workload.duration);
  ASSERT_TRUE(outcome.run);
  EXPECT_EQ(outcome.run->sections, outcome.sections);
  EXPECT_EQ(outcome.run->acquire.count, outcome.acquired.count());
  EXPECT_EQ(outcome.run->acquire.p99, seconds(outcome.acquired.percentile(0.99)));
  EXPECT_NEAR(outcome.run->sections_per_second,
              static_cast<double>(outcome.sections) / seconds(outcome.simulated), 1e-6);
  EXPECT_EQ(test::must(simulate(plan, 1)).sections, outcome.sections);
  plan.most_events = 0;
  EXPECT_EQ(test::must(simulate(plan, 1)).simulated, plan.workload.duration);
}

TEST(Simulation, IsNotOfClientPrograms) {
  Descriptor program = *find_strategy("redis-queue");
  EXPECT_EQ(why_not(program), "");
  program.program = "mine --serve";
  EXPECT_EQ(why_not(program), "it is a client program");
}

TEST(Rehearsal, HasEnoughGrantsOrShowsNothing) {
  const Plan plan = plan_for("redis-queue");
  EXPECT_GT(rehearse(plan, 20'000).value().sections, 100U);
  EXPECT_FALSE(rehearse(plan, 50));
}

TEST(Simulation, APauseBreaksALockWithATtlAndFencingSavesTheResource) {
  for (const char* const name : {"redis-set-nx-lua", "redis-fenced"}) {
    Plan plan = plan_for(name);
    plan.workload.duration = 10min;
    plan.pauses = {test::must(Pauses::parse("2%@5s"))};
    const Outcome outcome = test::must(simulate(plan, 1));
    EXPECT_GT(outcome.violations, 10U) << name;
    EXPECT_THAT(outcome.causes, Contains(Key("client-pause"))) << name;
    EXPECT_EQ(outcome.causes.size(), 1U) << name;
    EXPECT_GT(outcome.lost, 10U) << name;
    const bool fenced = std::string_view(name) == "redis-fenced";
    EXPECT_EQ(outcome.lost_fenced, fenced ? 0U : outcome.lost) << name;
  }
}

TEST(Simulation, APauseThatIsShorterThanTheTtlBreaksNothing) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.pauses = {test::must(Pauses::parse("20%@1500ms"))};
  EXPECT_EQ(test::must(simulate(plan, 1)).violations, 0U);
}

/// The violations that each fault alone leads to.
TEST(Simulation, EachFaultBreaksTheLockThatItIsKnownToBreak) {
  struct Case {
    const char *strategy, *faults, *cause;
  };
  for (const Case& one : {Case{"redis-set-nx-lua", "failover 10/m 10ms", "failover"},
                          Case{"redis-set-nx-lua", "clock-step:3s 20/m", "clock-step"},
                          Case{"redis-set-nx-lua", "eviction 30/m", "eviction"},
                          Case{"redis-getset", "client-clock-step:5s 5/m", "client-clock-step"},
                          Case{"redlock", "clock-step:3s 60/m", "clock-step"}}) {
    Plan plan = plan_for(one.strategy);
    plan.workload.duration = 10min;
    plan.workload.hold = loadgen::DurationDistribution::constant(500ms);
    plan.workload.think = {};
    plan.redis.replicas = 1;
    // Replicas that are far behind.
    plan.redis.lag = loadgen::DurationDistribution::constant(400ms);
    plan.faults = faults(one.faults);
    const Outcome outcome = test::must(simulate(plan, 1));
    EXPECT_THAT(outcome.causes, Contains(Key(one.cause))) << one.strategy;
  }
}

TEST(Simulation, AServerThatIsAwayIsAnOutage) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.workload.strategy.command_timeout = 500ms;
  plan.faults.add(test::must(loadgen::parse_fault("store-kill@10s+5s")));
  const Outcome outcome = test::must(simulate(plan, 1));
  EXPECT_THAT(outcome.longest_outage, AllOf(Gt(3s), Le(9s)));
  EXPECT_EQ(outcome.outage, outcome.longest_outage);
  EXPECT_GT(outcome.sections, 500U);
}

TEST(Simulation, FaultsOfTheNetworkAndOfServersAreFelt) {
  const auto play = [](const char* lines) {
    Plan plan = plan_for("redis-set-nx-lua");
    plan.workload.duration = 2min;
    plan.workload.strategy.command_timeout = 500ms;
    plan.faults = faults(lines);
    return test::must(simulate(plan, 1));
  };
  const Outcome healthy = play("");
  EXPECT_EQ(healthy.outage, Duration::zero());
  for (const char* const away : {"partition:1 2/m 4s", "partition-to:1 2/m 4s",
                                 "partition-from:1 2/m 4s", "store-freeze 2/m 4s"}) {
    const Outcome outcome = play(away);
    EXPECT_GT(outcome.longest_outage, 2s) << away;
    EXPECT_LT(outcome.sections, healthy.sections) << away;
    EXPECT_EQ(outcome.violations, 0U) << away;
  }
  for (const char* const slow : {"delay:200ms 60/m 2s", "loss:0.05"}) {
    EXPECT_GT(play(slow).acquired.mean(), healthy.acquired.mean() + 10ms) << slow;
  }
  // A drift of a thousandth of the TTL is no danger.
  EXPECT_EQ(play("clock-drift:1000\nclock-offset:100ms").violations, 0U);
}

TEST(Simulation, ADeadClientsLockIsFreeAfterItsTtlAndAnotherTakesItsPlace) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.workload.ttl = 4s;
  plan.faults.add(test::must(loadgen::parse_fault("client-kill@10s+3s")));
  const Played all = played(plan);
  EXPECT_THAT(all.trace, HasSubstr(" dies\n"));
  EXPECT_THAT(all.outcome.longest_outage, AllOf(Gt(3s), Le(5s)));
  EXPECT_EQ(all.outcome.violations, 0U);
}

TEST(Simulation, WritesThatWereNotSyncedAreLostWithTheMachine) {
  for (const auto& [persistence, loses] :
       {std::pair(Persistence::none, true), std::pair(Persistence::always, false)}) {
    Plan plan = plan_for("redis-set-nx-lua");
    plan.workload.hold = loadgen::DurationDistribution::constant(3s);
    plan.workload.ttl = 10s;
    plan.workload.duration = 10min;
    plan.redis.persistence = persistence;
    plan.faults = faults("store-kill 3/m 100ms");
    const Outcome outcome = test::must(simulate(plan, 1));
    EXPECT_EQ(outcome.violations > 0, loses);
  }
}

TEST(Simulation, RegionsHaveTheirOwnWaits) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.workload.key_per_client = true;
  plan.workload.clients = 2;
  plan.regions = {test::must(find_region("eu")), test::must(find_region("us"))};
  const Outcome outcome = test::must(simulate(plan, 1));
  ASSERT_EQ(outcome.by_region.size(), 2U);
  EXPECT_LT(outcome.by_region[0].percentile(0.5), 5ms);
  EXPECT_GT(outcome.by_region[1].percentile(0.5), 60ms);
}

TEST(Simulation, ManySeedsAddUpWithAnInterval) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.pauses = {test::must(Pauses::parse("1%@5s"))};
  std::vector<Outcome> outcomes;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    outcomes.push_back(test::must(simulate(plan, seed)));
  }
  const results::Simulation all = summarise(plan, 1, outcomes);
  EXPECT_EQ(all.seeds, 5U);
  EXPECT_DOUBLE_EQ(all.simulated_seconds, 300);
  EXPECT_GT(all.violations, 0U);
  EXPECT_LT(all.per_million.low, all.per_million.value);
  EXPECT_GT(all.per_million.high, all.per_million.value);
  EXPECT_NEAR(all.per_million.value,
              1e6 * static_cast<double>(all.violations) / static_cast<double>(all.sections), 1e-6);
  EXPECT_GT(all.availability, 0.5);
  EXPECT_LE(all.availability, 1.0);
}

TEST(Simulation, AWrongFaultIsNamedWithItsLine) {
  std::istringstream file("# a comment\nfailover 12/y 30s\nfailover often 30s\n");
  const auto read = Faults::read(file, "my.faults");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error(), AllOf(HasSubstr("my.faults, line 3"), HasSubstr("failover often 30s"),
                                  HasSubstr("failover RATE LENGTH")));
  for (const char* const wrong :
       {"1%", "x%@2s", "101%@2s", "1/w@2s", "inf/s@1s", "1001/s@1s", "1%@fast"}) {
    const auto pauses = Pauses::parse(wrong);
    ASSERT_FALSE(pauses) << wrong;
    EXPECT_THAT(pauses.error(), HasSubstr(wrong));
  }
}

TEST(Clock, NeverRunsBackwardsAndStaysNearTheTime) {
  Random random(1);
  const Clock clock(random, 1e-3, 5s);
  TimePoint before{};
  for (TimePoint real{1h}; real < TimePoint(1h + 200s); real += 7ms) {
    const TimePoint shown = clock.now(real);
    EXPECT_GT(shown, before);
    EXPECT_LE(std::chrono::abs(shown - real), Clock::kMostAhead);
    const TimePoint when = clock.when(shown);
    EXPECT_LE(std::chrono::abs(when - real), 10us);
    EXPECT_GE(clock.now(when), shown);
    before = shown;
  }
}

}  // namespace
}  // namespace lockbench::simulate
