#include "simulate/hunt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "simulate/orders.h"
#include "strategies/registry.h"
#include "tests/support/broken_locks.h"
#include "tests/support/known_bugs.h"
#include "tests/support/must.h"
#include "tests/support/test_names.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string seen_in(const Descriptor& strategy, const Trial& trial) {
  std::string all;
  const Verdict verdict =
      test::must(play(strategy, trial, [&](const std::string& line) { all += line + "\n"; }));
  return all + (verdict.finding ? verdict.finding->what : "nothing") + verdict.trial.to_string();
}

class KnownBugs : public testing::TestWithParam<std::size_t> {
 protected:
  const test::KnownBug& bug() const { return test::known_bugs().at(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, KnownBugs, testing::Range(std::size_t{0}, test::known_bugs().size()),
                         [](const auto& one) {
                           return std::string(test::known_bugs().at(one.param).name);
                         });

TEST_P(KnownBugs, IsFoundByItsOracle) {
  EXPECT_TRUE(test::hunt_for(bug().oracle, bug().with, bug().seed, 3000));
}

TEST_P(KnownBugs, IsAbsentWithoutTheMistake) {
  const auto hit = test::hunt_for(bug().oracle, bug().without, bug().seed, 40);
  EXPECT_FALSE(hit) << hit->verdict.finding->what << ", trial " << hit->verdict.trial.to_string();
}

struct Catch {
  Oracle oracle;
  std::string_view flaw;
};

class OracleOf : public testing::TestWithParam<Catch> {};
// The known bugs show the others.
INSTANTIATE_TEST_SUITE_P(All, OracleOf,
                         testing::Values(Catch{Oracle::fencing, "repeats_fencing_numbers"},
                                         Catch{Oracle::liveness, "forgets_to_release"},
                                         Catch{Oracle::overlap, "lets_two_in"},
                                         Catch{Oracle::left_behind, "leaves_an_unnamed_key"}),
                         [](const auto& one) {
                           std::string name(to_string(one.param.oracle));
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST_P(OracleOf, CatchesABrokenLock) {
  EXPECT_TRUE(test::hunt_for(GetParam().oracle, test::broken_lock(GetParam().flaw), 0, 1000));
}

/// Of those that are built.
std::vector<std::string> sound_ones() {
  std::vector<std::string> names{"redis-set-nx-lua",
                                 "redis-fenced",
                                 "redis-queue",
                                 "redis-watchdog",
                                 "redis-read-write",
                                 "redis-setnx-token",
                                 "redis-observed-lease",
                                 "redlock",
                                 "redlock-parallel",
                                 "memcached-add-cas",
                                 "zookeeper",
                                 "zookeeper-herd",
                                 "zookeeper-semaphore",
                                 "etcd",
                                 "chubby",
                                 "etcd-observed-lease"};
  std::erase_if(names, [](const std::string& name) { return find_strategy(name) == nullptr; });
  return names;
}

class Sound : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Sound, testing::ValuesIn(sound_ones()),
                         [](const auto& one) { return test::test_name_of(one.param); });

TEST_P(Sound, IsNotAccused) {
  const Descriptor& strategy = *find_strategy(GetParam());
  std::uint64_t sections = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Verdict verdict = test::must(play(strategy, {.seed = seed}));
    EXPECT_FALSE(verdict.finding) << seed << ": " << verdict.finding->what;
    sections += verdict.sections;
  }
  EXPECT_GT(sections, 400U);
}

TEST(Hunt, TheSameTrialIsTheSameByteForByte) {
  const Descriptor& strategy = *find_strategy("redis-reentrant-notify");
  std::set<std::string> different;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string first = seen_in(strategy, {.seed = seed});
    EXPECT_EQ(first, seen_in(strategy, {.seed = seed}));
    different.insert(first);
  }
  EXPECT_EQ(different.size(), 8U);
}

TEST(Hunt, ShrinkingKeepsTheFindingAndReplaysIt) {
  const Descriptor& strategy = test::broken_lock("lets_two_in");
  const Verdict whole = test::hunt_for(Oracle::overlap, strategy, 0, 100).value().verdict;
  const Verdict least = shrink(strategy, whole);
  ASSERT_TRUE(least.finding);
  EXPECT_EQ(least.finding->oracle, Oracle::overlap);
  EXPECT_LE(*least.trial.clients, 3);
  EXPECT_LE(*least.trial.sections, 5);
  EXPECT_LE(least.trial.faults->size(), whole.trial.faults->size());
  const Trial again = test::must(Trial::parse(least.trial.to_string()));
  EXPECT_EQ(seen_in(strategy, again), seen_in(strategy, least.trial));
}

TEST(Hunt, ATrialIsReadAndWritten) {
  for (const char* const text :
       {"17", "0,clients=2,sections=5,changes=0,faults=0+3", "18446744073709551615,faults=none"}) {
    EXPECT_EQ(test::must(Trial::parse(text)).to_string(), text);
  }
  for (const char* const wrong : {"", "x", "-1", "1,clients", "1,clients=x", "1,nodes=3",
                                  "1,faults=", "1,faults=1+", "1,changes=-1"}) {
    const auto trial = Trial::parse(wrong);
    ASSERT_FALSE(trial) << wrong;
    EXPECT_THAT(trial.error(), AllOf(HasSubstr(wrong), HasSubstr("SEED,clients=N")));
  }
}

TEST(Orders, ALowerPriorityIsFourTimesAsLateAndAChangeMakesItTheLowest) {
  using Kind = OrderPlan::Kind;
  Orders steady({.kind = Kind::priorities, .latest = 16ms}, 3, 1);
  std::multiset<Duration> late;
  for (int client = 0; client < 3; ++client) late.insert(steady.late(client));
  EXPECT_THAT(late, testing::ElementsAre(1ms, 4ms, 16ms));
  for (int client = 0; client < 3; ++client) {
    Orders changed({.kind = Kind::priorities, .latest = 16ms, .changes = 1, .steps = 1}, 3, 1);
    EXPECT_EQ(changed.late(client), 16ms);
    EXPECT_EQ(changed.late(client), 16ms);
  }
}

TEST(Orders, UniformOnesAreLateHalfOfTheTime) {
  Orders orders({.kind = OrderPlan::Kind::uniform, .latest = 8ms}, 2, 1);
  int late = 0;
  for (int i = 0; i < 1000; ++i) {
    const Duration by = orders.late(i % 2);
    EXPECT_LE(by, 8ms);
    late += by > Duration::zero() ? 1 : 0;
  }
  EXPECT_NEAR(late, 500, 100);
}

}  // namespace
}  // namespace lockbench::simulate
