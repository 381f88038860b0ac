#include "tests/integration/metrics/probe_fixture.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

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

std::string strategy_series(const std::string& name, const std::string& strategy) {
  return fmt::format("{}{{strategy=\"{}\"", name, strategy);
}

TEST_F(ProbeTest, WaitsForAServerThatIsNotThereYetAndIsNotReady) {
  ASSERT_TRUE(redis_->kill_hard());
  const auto program = probe({"redis-set-nx-lua", "--rate", "20"});
  EXPECT_TRUE(program->says("redis-set-nx-lua: failing: unreachable")) << program->said();
  EXPECT_EQ(page("/-/ready").status, 503);
  EXPECT_EQ(page("/-/healthy").status, 200);
  EXPECT_TRUE(eventually([&] { return troubles() > 10; })) << "they count as failed";
  ASSERT_TRUE(redis_->restart(false));
  EXPECT_TRUE(program->says("working again after")) << program->said();
  EXPECT_TRUE(works_on());
  const double troubles_then = troubles();
  EXPECT_TRUE(works_on());
  EXPECT_EQ(troubles(), troubles_then);
  program->signal(SIGTERM);
  EXPECT_EQ(program->finish().code, 0);
  EXPECT_THAT(RedisProbe(redis_->port()).keys(), IsEmpty());
}

TEST_F(ProbeTest, ThatStoodStillDoesNotBlameTheService) {
  // Right before a renewal, two thirds of the TTL are left: longer than what counts as standing
  // still.
  const auto program = probe({"redis-set-nx-lua", "--rate", "20", "--ttl", "4s"});
  ASSERT_TRUE(eventually([&] { return sections("acquired") > 20; }));
  const std::string paused = "lockbench_paused_seconds_total{strategy=\"redis-set-nx-lua\"";
  EXPECT_EQ(metric(paused), 0);
  RedisProbe redis(redis_->port());
  const auto some_lock_is_held = [&] {
    return std::ranges::any_of(redis.keys(), [](const std::string& key) {
      return key.find("{redis-set-nx-lua:") != std::string::npos;
    });
  };
  // Stops it while it holds a lock, until that has expired.
  ASSERT_TRUE(eventually([&] {
    program->signal(SIGSTOP);
    if (some_lock_is_held()) return true;
    program->signal(SIGCONT);
    return false;
  }));
  ASSERT_TRUE(eventually([&] { return !some_lock_is_held(); }));
  program->signal(SIGCONT);
  EXPECT_TRUE(program->says("this probe stood still for")) << program->said();
  EXPECT_GT(metric(paused), 0);
  EXPECT_TRUE(works_on());
  for (const char* name : {"lockbench_leases_lost_total", "lockbench_overlaps_total"}) {
    EXPECT_EQ(metric(fmt::format("{}{{strategy=\"redis-set-nx-lua\"", name)), 0) << name;
  }
  EXPECT_EQ(sections("timed_out") + sections("abandoned") + troubles(), 0);
  program->signal(SIGTERM);
  EXPECT_EQ(program->finish().code, 0);
}

TEST_F(ProbeTest, SaysWhyItsExitCodeIsThree) {
  const auto program = probe({"test-blind", "--rate", "20"}, {.program = "lockbench_with_mutants"});
  EXPECT_TRUE(program->says("test-blind: two holders at once: ")) << program->said();
  program->signal(SIGTERM);
  const Outcome outcome = program->finish();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("exit code 3: test-blind: two holders at once: "));
}

TEST_F(ProbeTest, ReadsAFileWithANewPasswordAgain) {
  RedisProbe admin(redis_->port());
  const std::string user(testbed::kUser);
  const auto write = [&](const std::string& password) {
    return scratch_.write(
        "redis", fmt::format("redis://{}:{}@127.0.0.1:{}", user, password, redis_->port()));
  };
  Program program(scratch_,
                  {"probe", "redis-set-nx-lua", "--rate", "20", "--redis",
                   "@" + write(redis_->secret()), "--metrics-listen", std::to_string(port_)});
  const std::string failures =
      "lockbench_acquire_failures_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",reason="
      "\"auth\"";
  ASSERT_TRUE(eventually([&] { return page("/-/ready").status == 200; }));
  EXPECT_EQ(metric(failures), 0);
  admin.ask({"ACL", "SETUSER", user, "resetpass", ">rotated"});
  admin.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(program.says("redis-set-nx-lua: failing: auth: ")) << program.said();
  EXPECT_GT(metric(failures), 0);
  EXPECT_EQ(page("/-/ready").status, 503);
  EXPECT_THAT(page("/-/ready").body, HasSubstr("redis-set-nx-lua: auth"));
  EXPECT_EQ(page("/-/healthy").status, 200);
  (void)write("rotated");
  EXPECT_TRUE(program.says("working again after")) << program.said();
  EXPECT_EQ(page("/-/ready").status, 200);
  EXPECT_TRUE(works_on());
  (void)scratch_.write("redis",
                       fmt::format("redis://{}:rotated@127.0.0.1:{}", user, closed_port()));
  EXPECT_TRUE(program.says(fmt::format("this probe stays with {}", redis_->address())))
      << "its metrics name this server";
  EXPECT_TRUE(works_on());
  EXPECT_THAT(program.said(), testing::Not(HasSubstr("rotated")));
}

TEST_F(ProbeTest, NoticesThatNobodyElseCanConnect) {
  RedisProbe before(redis_->port());
  const auto program = probe({"redis-set-nx-lua", "--rate", "20"});
  EXPECT_TRUE(eventually([&] { return page("/-/ready").status == 200; }));
  const std::string failing = strategy_series("lockbench_connect_failing", "redis-set-nx-lua");
  EXPECT_EQ(metric(failing), 0);
  before.ask({"CONFIG", "SET", "maxclients", "1"});
  EXPECT_TRUE(program->says("a new connection failed, while open ones still work: "))
      << program->said();
  EXPECT_TRUE(works_on());
  EXPECT_EQ(metric(failing), 1);
  EXPECT_EQ(page("/-/ready").status, 503);
  EXPECT_THAT(page("/-/ready").body, HasSubstr("max number of clients"));
  before.ask({"CONFIG", "SET", "maxclients", "1000"});
  EXPECT_TRUE(program->says("new connections work again")) << program->said();
}

TEST_F(ProbeTest, KeysThatAreDeletedAreNoticedWithTheSettingsOfTheUnit) {
  const auto program = probe(arguments_of_the_unit());
  const std::string lost = strategy_series("lockbench_leases_lost_total", "redis-set-nx-lua");
  const std::string renewed =
      "lockbench_renewals_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome="
      "\"renewed\"";
  EXPECT_TRUE(eventually([&] { return metric(renewed) > 0; }));
  EXPECT_EQ(metric(lost), 0);
  // Until it hits a lock that is held, whose holder must notice the loss.
  constexpr auto kDeleteAll =
      "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', key) end";
  RedisProbe redis(redis_->port());
  EXPECT_TRUE(eventually([&] {
    redis.ask({"EVAL", kDeleteAll, "0"});
    return metric(lost) > 0;
  }));
}

}  // namespace
}  // namespace lockbench::test
