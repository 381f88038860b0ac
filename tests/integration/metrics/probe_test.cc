#include "tests/integration/metrics/probe_fixture.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(ProbeTest, LivesThroughAKillAndARestartOfItsServer) {
  const auto program = probe({"redis-set-nx-lua", "--rate", "20"});
  ASSERT_TRUE(eventually([&] { return sections("acquired") > 5; }));
  EXPECT_EQ(troubles(), 0);

  ASSERT_TRUE(redis_->kill_hard());
  EXPECT_TRUE(eventually([&] { return troubles() > 10; }));
  EXPECT_TRUE(program->says("redis-set-nx-lua: failing"));
  ASSERT_TRUE(redis_->restart(false));
  EXPECT_TRUE(works_on());
  EXPECT_TRUE(program->says("working again after"));
  const double troubles_then = troubles();
  EXPECT_TRUE(works_on());
  EXPECT_EQ(troubles(), troubles_then);

  program->signal(SIGTERM);
  const Outcome outcome = program->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(RedisProbe(redis_->port()).keys(), IsEmpty());
}

TEST_F(ProbeTest, EndsByItselfWhenItsTimeIsUp) {
  const Outcome outcome =
      probe({"redis-set-nx-lua", "redis-watchdog", "--rate", "50", "--duration", "1s"})->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("probing 2 strategies"));
  EXPECT_THAT(RedisProbe(redis_->port()).keys(), IsEmpty());
}

TEST_F(ProbeTest, SaysSoIfItsServerWasGone) {
  const auto program = probe({"redis-set-nx-lua", "--rate", "20", "--duration", "5s"});
  ASSERT_TRUE(eventually([&] { return sections("acquired") > 5; }));
  ASSERT_TRUE(redis_->kill_hard());
  EXPECT_EQ(program->finish().code, 2);
}

TEST_F(ProbeTest, WithoutNamesItProbesWhatPromisesExclusionOnTheServersGiven) {
  const Outcome outcome = probe({"--rate", "20", "--duration", "500ms"})->finish();
  EXPECT_NE(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("none")));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("probing [0-9]+ strategies"));
}

TEST_F(ProbeTest, SeriesSayWhichDeploymentTheyAreOf) {
  const auto series = [](const std::string& name) {
    return "lockbench_overlaps_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",deployment="
           "\"" +
           name + "\"}";
  };
  const auto unnamed = probe({"redis-set-nx-lua", "--rate", "20"});
  EXPECT_TRUE(
      eventually([&] { return metric(series(fmt::format("127.0.0.1:{}", redis_->port()))) == 0; }));
  unnamed->signal(SIGTERM);
  unnamed->finish();
  const auto named = probe({"redis-set-nx-lua", "--rate", "20", "--deployment", "eu-1"});
  EXPECT_TRUE(eventually([&] { return metric(series("eu-1")) == 0; }));
}

/// One line, and exit code 1.
void expect_refused(const std::vector<std::string>& arguments, const std::string& why) {
  const Scratch scratch;
  (void)scratch.write("empty.toml", "");
  const Outcome outcome = lockbench(scratch, arguments);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(lines_of(outcome.err), testing::ElementsAre(HasSubstr(why)));
}

TEST(ProbeUsageTest, WantsARate) {
  expect_refused({"probe", "redis-set-nx-lua", "--redis", "redis://127.0.0.1:1"},
                 "probe requires --rate");
}

TEST(ProbeUsageTest, ProbesNoServersOfItsOwn) {
  const std::vector<std::string> short_probe = {"probe", "--rate", "1", "--duration", "100ms"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), short_probe.begin(), short_probe.end());
    return more;
  };
  expect_refused(with({}), "nothing to probe");
  expect_refused(with({"--config", "empty.toml"}), "nothing to probe");
  expect_refused(with({"redis-set-nx-lua", "--config", "empty.toml"}),
                 "redis-set-nx-lua cannot be probed without its servers: --redis URL");
  expect_refused(with({"redis-*"}), "nothing to probe");
  expect_refused(with({"none"}), "none cannot be probed: it has no server");
}

TEST(ProbeUsageTest, WantsTwoClientsForEachLock) {
  expect_refused({"probe", "redis-set-nx-lua", "--rate", "1", "--redis", "redis://127.0.0.1:1",
                  "--clients", "5"},
                 "--clients 5");
}

}  // namespace
}  // namespace lockbench::test
