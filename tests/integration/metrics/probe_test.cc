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
  const Outcome outcome =
      probe({"--rate", "20", "--duration", "500ms", "--acquire-timeout", "60s"})->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
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

TEST(ProbeUsageTest, MistakesAreOneLine) {
  const Scratch scratch;
  (void)scratch.write("empty.toml", "");
  for (const auto& [more, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"redis-set-nx-lua", "--redis", "redis://127.0.0.1:1"}, "probe requires --rate"},
           {{"--rate", "1"}, "nothing to probe"},
           {{"--rate", "1", "--config", "empty.toml"}, "nothing to probe"},
           {{"--rate", "1", "redis-set-nx-lua", "--config", "empty.toml"},
            "redis-set-nx-lua cannot be probed without its servers: --redis URL"},
           {{"--rate", "1", "redis-*"}, "nothing to probe"},
           {{"--rate", "1", "none"}, "none cannot be probed: it has no server"},
           {{"--rate", "1", "redis-set-nx-lua", "--redis", "redis://127.0.0.1:1", "--clients", "5"},
            "--clients 5"}}) {
    std::vector<std::string> arguments = {"probe", "--duration", "100ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = lockbench(scratch, arguments);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(lines_of(outcome.err), testing::ElementsAre(HasSubstr(why)));
  }
}

}  // namespace
}  // namespace lockbench::test
