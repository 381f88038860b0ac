#include "tests/integration/metrics/probe_fixture.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;

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

TEST_F(ProbeFaultsTest, KeysThatAreDeletedAreNoticedWithTheSettingsOfTheUnit) {
  const auto program = probe(arguments_of_the_unit());
  const std::string lost = strategy_series("lockbench_leases_lost_total", "redis-set-nx-lua");
  const std::string renewed =
      "lockbench_renewals_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome="
      "\"renewed\"";
  EXPECT_TRUE(eventually([&] { return metric(renewed) > 0; }));
  EXPECT_EQ(metric(lost), 0);
  // Deletes the key of a lock that is held, so that its holder must notice the loss.
  constexpr auto kDeleteAll =
      "local keys = redis.call('KEYS', '*') if #keys > 0 then redis.call('DEL', unpack(keys)) end "
      "return #keys";
  EXPECT_TRUE(eventually([&] { return ask({"EVAL", kDeleteAll, "0"}) != "0"; }));
  EXPECT_TRUE(eventually([&] { return metric(lost) > 0; }));
}

}  // namespace
}  // namespace lockbench::test
