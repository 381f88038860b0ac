#include "tests/integration/metrics/probe_fixture.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::string strategy_series(const std::string& name, const std::string& strategy) {
  return fmt::format("{}{{strategy=\"{}\"", name, strategy);
}

class ProbeFaultsTest : public ProbeTest {
 protected:
  std::string ask(const std::vector<std::string>& command) {
    return RedisProbe(redis_->port()).ask(command);
  }

  /// The fault is in the message, the label and the readiness.
  std::unique_ptr<Program> expect_reason(const std::string& reason,
                                         const std::function<void()>& strike) {
    auto program = probe({"redis-set-nx-lua", "--rate", "20"});
    EXPECT_TRUE(eventually([&] { return page("/-/ready").status == 200; }));
    const std::string series = fmt::format(
        "lockbench_acquire_failures_total{{strategy=\"redis-set-nx-lua\",backend=\"redis\",reason="
        "\"{}\"",
        reason);
    EXPECT_EQ(metric(series), 0);
    strike();
    EXPECT_TRUE(program->says("redis-set-nx-lua: failing: " + reason + ": ")) << program->said();
    EXPECT_GT(metric(series), 0);
    EXPECT_EQ(page("/-/ready").status, 503);
    EXPECT_THAT(page("/-/ready").body, HasSubstr("redis-set-nx-lua: " + reason));
    EXPECT_EQ(page("/-/healthy").status, 200);
    return program;
  }
};

TEST_F(ProbeFaultsTest, IsNotReadyBeforeItHasWorked) {
  ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto program = probe({"redis-set-nx-lua", "--rate", "20"});
  ASSERT_TRUE(eventually([&] { return page("/-/healthy").status == 200; }));
  EXPECT_EQ(page("/-/ready").status, 503);
}

TEST_F(ProbeFaultsTest, SaysThatItsPasswordIsWrongAndIsReadyWhenItIsRightAgain) {
  RedisProbe before(redis_->port());
  const auto program = expect_reason("auth", [&] {
    before.ask({"ACL", "SETUSER", std::string(testbed::kUser), "resetpass", ">rotated"});
    before.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  });
  before.ask({"ACL", "SETUSER", std::string(testbed::kUser), "resetpass", ">" + redis_->secret()});
  EXPECT_TRUE(program->says("working again after")) << program->said();
  EXPECT_EQ(page("/-/ready").status, 200);
}

TEST_F(ProbeFaultsTest, OneStuckLockOfTwoIsSeenAsLongAsItIsStuck) {
  const auto program = probe({"redis-set-nx-lua", "--rate", "20", "--acquire-timeout", "300ms"});
  std::string key;
  ASSERT_TRUE(eventually([&] {
    for (const std::string& one : RedisProbe(redis_->port()).keys()) {
      if (one.ends_with(":0}")) key = one;
    }
    return !key.empty();
  }));
  const std::string stuck = strategy_series("lockbench_stuck_locks", "redis-set-nx-lua");
  EXPECT_EQ(metric(stuck), 0);
  ask({"SET", key, "somebody"});
  EXPECT_TRUE(eventually([&] { return metric(stuck) == 1; }));
  EXPECT_TRUE(program->says("failing: taken"));
  // The other lock goes on for longer than it takes to count as working.
  const double before = sections("acquired");
  EXPECT_TRUE(eventually([&] { return sections("acquired") > before + 60; }));
  EXPECT_FALSE(program->says("working again", 0s)) << program->said();
  EXPECT_EQ(metric(stuck), 1);
  ask({"DEL", key});
  EXPECT_TRUE(eventually([&] { return metric(stuck) == 0; }));
}

TEST_F(ProbeFaultsTest, KeysThatAreDeletedAreNoticedWithTheSettingsOfTheUnit) {
  const auto program = probe(arguments_of_the_unit());
  const std::string lost = strategy_series("lockbench_leases_lost_total", "redis-set-nx-lua");
  const std::string renewed =
      "lockbench_renewals_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome="
      "\"renewed\"";
  EXPECT_TRUE(eventually([&] { return metric(renewed) > 0; }));
  EXPECT_EQ(metric(lost), 0);
  EXPECT_TRUE(eventually([&] {
    ask({"FLUSHALL"});
    return metric(lost) > 0;
  }));
}

TEST_F(ProbeFaultsTest, AnEmptyServerResetsFencingNumbersOnce) {
  const auto program = probe({"redis-fenced", "--rate", "20"});
  const std::string resets = strategy_series("lockbench_fence_resets_total", "redis-fenced");
  const std::string regressions =
      strategy_series("lockbench_fence_regressions_total", "redis-fenced");
  const std::string grants =
      "lockbench_sections_total{strategy=\"redis-fenced\",backend=\"redis\",outcome=\"acquired\"";
  // High numbers, below which the new ones stay.
  ASSERT_TRUE(eventually([&] { return metric(grants) > 60; }));
  EXPECT_EQ(metric(resets), 0);
  ask({"FLUSHALL"});
  ASSERT_TRUE(eventually([&] { return metric(regressions) > 10; }));
  EXPECT_EQ(metric(resets), 2) << "each of the two locks has its own numbers";
}

}  // namespace
}  // namespace lockbench::test
