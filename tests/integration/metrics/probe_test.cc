#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <csignal>

#include "testbed/servers/ports.h"
#include "tests/integration/support/program.h"
#include "tests/support/http_client.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

/// A probe of a Redis that is killed, frozen and started again.
class ProbeTest : public testing::Test {
 protected:
  ProbeTest() {
    testbed::RedisOptions options;
    options.durable = false;
    redis_ = own_redis(options);
  }

  std::unique_ptr<Program> probe(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "probe");
    arguments.insert(arguments.end(), {"--redis", redis_->url(), "--store-timeout", "300ms",
                                       "--metrics-listen", std::to_string(port_)});
    return std::make_unique<Program>(scratch_, arguments);
  }

  /// Of sections with that outcome; -1 while there is no answer.
  int sections(const std::string& outcome) const {
    const std::string page = http_get(port_, "/metrics").body;
    const std::string series = fmt::format(
        "lockbench_sections_total{{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome=\"{}\"}}"
        " ",
        outcome);
    const std::size_t at = page.find(series);
    int count = -1;
    if (at == std::string::npos) return count;
    std::from_chars(page.data() + at + series.size(), page.data() + page.size(), count);
    return count;
  }
  int troubles() const { return sections("failed") + sections("unknown"); }
  bool works_on() const {
    const int before = sections("acquired");
    return eventually([&] { return sections("acquired") > before; });
  }

  Scratch scratch_;
  std::unique_ptr<testbed::Server> redis_;
  const std::uint16_t port_ = testbed::free_loopback_port().value();
};

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
  const int troubles_then = troubles();
  EXPECT_TRUE(works_on());
  EXPECT_EQ(troubles(), troubles_then);

  program->signal(SIGTERM);
  const Outcome outcome = program->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(RedisProbe(redis_->port()).keys(), IsEmpty());
}

TEST_F(ProbeTest, DoesNotFloodAServerThatWasFrozen) {
  const auto program = probe({"redis-set-nx-lua", "--rate", "100"});
  ASSERT_TRUE(eventually([&] { return sections("acquired") > 10; }));
  ASSERT_TRUE(redis_->freeze());
  ASSERT_TRUE(eventually([&] { return sections("abandoned") > 200; }));
  const int acquired = sections("acquired");
  ASSERT_TRUE(redis_->thaw());
  ASSERT_TRUE(eventually([&] { return sections("acquired") > acquired; }));
  // A second's worth may be made up for, not all that was missed.
  EXPECT_LT(sections("acquired") - acquired, 200);
  EXPECT_TRUE(works_on());
  program->signal(SIGTERM);
  EXPECT_EQ(program->finish().code, 0);
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
  const auto program = probe({"redis-set-nx-lua", "--rate", "20", "--duration", "2s"});
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

TEST(ProbeUsageTest, WantsARateAndSomethingToProbe) {
  const Scratch scratch;
  const Outcome no_rate = lockbench(scratch, {"probe", "redis-set-nx-lua"});
  EXPECT_EQ(no_rate.code, 1);
  EXPECT_THAT(no_rate.err, HasSubstr("probe requires --rate"));
  const Outcome nothing = lockbench(scratch, {"probe", "--rate", "1"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to probe"));
}

}  // namespace
}  // namespace lockbench::test
