#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulate/memcached/model.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class Memcached : public testing::Test {
 protected:
  std::string ask(const std::string& command) {
    input_ += command;
    return model_.execute(input_, now_).value_or("incomplete");
  }

  MemcachedModel model_;
  std::string input_;
  std::int64_t now_ = MemcachedModel::kFirstSecond;
};

TEST_F(Memcached, ExpiresByTheSecondsThatItIsGiven) {
  EXPECT_EQ(ask("add k 0 2 1\r\nx\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("add k 0 2 1\r\ny\r\n"), "NOT_STORED\r\n");
  now_ += 1;
  EXPECT_EQ(ask("gets k\r\n"), "VALUE k 0 1 1\r\nx\r\nEND\r\n");
  EXPECT_THAT(model_.names(now_), ElementsAre("k"));
  now_ += 1;
  EXPECT_THAT(model_.names(now_), IsEmpty());
  EXPECT_EQ(ask("gets k\r\n"), "END\r\n");
  EXPECT_EQ(ask("add k 0 0 1\r\ny\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("touch k -1\r\n"), "TOUCHED\r\n");
  EXPECT_EQ(ask("delete k\r\n"), "NOT_FOUND\r\n");
}

TEST_F(Memcached, ComparesTheVersionOfAnItem) {
  EXPECT_EQ(ask("cas k 0 0 1 1\r\nx\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(ask("add k 0 0 1\r\nx\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("cas k 0 0 1 7\r\ny\r\n"), "EXISTS\r\n");
  EXPECT_EQ(ask("cas k 0 -1 1 1\r\ny\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("get k\r\n"), "END\r\n");
}

TEST_F(Memcached, WaitsForTheRestOfACommandAndTakesOneAtATime) {
  EXPECT_EQ(ask("add k 0 0 3\r"), "incomplete");
  EXPECT_EQ(ask("\nx\r"), "incomplete");
  EXPECT_EQ(ask("\n\r\ntouch k 5\r\ndel"), "STORED\r\n");
  EXPECT_EQ(ask(""), "TOUCHED\r\n");
  EXPECT_EQ(ask(""), "incomplete");
  EXPECT_EQ(ask("ete k\r\n"), "DELETED\r\n");
  EXPECT_EQ(ask("steal k\r\n"), "ERROR\r\n");
}

TEST(SimulatedMemcached, IsForgottenWithItsMachineAndBrokenByThePausesOfHolders) {
  Plan plan = plan_for("memcached-add-cas");
  plan.workload.hold = loadgen::DurationDistribution::constant(500ms);
  plan.workload.duration = 5min;
  EXPECT_EQ(test::must(simulate(plan, 1)).violations, 0U);
  Plan dying = plan;
  dying.faults = faults("store-kill 10/m 50ms");
  EXPECT_THAT(test::must(simulate(dying, 1)).causes, Contains(Key("store-kill")));
  Plan evicting = plan;
  evicting.faults = faults("eviction 30/m");
  EXPECT_THAT(test::must(simulate(evicting, 1)).causes, Contains(Key("eviction")));
  plan.pauses = {test::must(Pauses::parse("5%@10s"))};
  EXPECT_THAT(test::must(simulate(plan, 1)).causes, Contains(Key("client-pause")));
}

// It asks for two seconds more than it trusts, as the server counts two of them in one step now and
// then.
TEST(SimulatedMemcached, KeepsALockToTheEndOfItsLease) {
  Plan plan = plan_for("memcached-add");
  plan.workload.clients = 2;
  plan.workload.hold = loadgen::DurationDistribution::constant(1990ms);
  plan.workload.think = {};
  plan.workload.duration = 1h;
  EXPECT_EQ(test::must(simulate(plan, 1)).violations, 0U);
}

TEST(SimulatedMemcached, TellsItsCommands) {
  Plan plan = plan_for("memcached-add");
  plan.workload.duration = 1s;
  EXPECT_THAT(played(plan).trace, HasSubstr(" memcached-0 executes \"add "));
}

}  // namespace
}  // namespace lockbench::simulate
