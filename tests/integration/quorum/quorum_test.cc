#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "testbed/servers/redis_group.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

TEST(RedisWait, RunsOnAPrivatePrimaryWithReplicas) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-wait", "redis-set-nx-lua", "--replicas", "3", "--clients",
                          "2", "--iterations", "50", "--warmup", "0ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-wait");
  const Json& replication = run.at("replication");
  EXPECT_EQ(replication.at("replicas"), 3);
  EXPECT_EQ(replication.at("refusals"), 0);
  EXPECT_GE(replication.at("wait").at("count"), run.at("sections"));
  EXPECT_GT(run.at("sections"), 0);
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_TRUE(run_of(result, "redis-set-nx-lua").at("replication").is_null());
  const Json& servers = result.at("environment").at("servers");
  EXPECT_NE(servers.at("redis").at("endpoints"), servers.at("redis-replicated").at("endpoints"))
      << "the others do not pay for replicas";
}

TEST(RedisWait, WithoutEnoughReplicasOrTheirNumberCannotRun) {
  testbed::RedisGroupOptions options{.replicas = 1};
  options.server.durable = false;
  options.server.config = {
      "user lockonly on >secret ~lockbench:* -@all +@read +@write +@scripting "
      "+@connection +wait +unlink"};
  const auto group = must(testbed::start_redis_group(shared_testbed(), options));
  const std::string one = fmt::format("127.0.0.1:{}", group->primary().port());
  // The user may not ask for the number of replicas.
  const std::string locked = "redis://lockonly:secret@" + one;
  const auto run = [](const Scratch& scratch, const Words& more) {
    Words arguments = {"run",      "redis-wait", "--iterations", "50",
                       "--warmup", "0ms",        "--out",        "r.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return lockbench(scratch, arguments);
  };
  const Scratch scratch;
  for (const auto& [more, why] : std::vector<std::pair<Words, std::string>>{
           {{"--redis", group->primary().url()}, one + " has 1 replica now"},
           {{"--redis", group->primary().url(), "--wait-replicas", "all"}, "set --wait-replicas"},
           {{"--redis", shared_redis().url()}, "has 0 replicas"},
           {{"--replicas", "1", "--wait-replicas", "2"}, "has 1 replica, and 2 must acknowledge"},
           {{"--redis", locked}, "set --wait-replicas"}}) {
    const Outcome outcome = run(scratch, more);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    expect_in(outcome.err, why);
    EXPECT_FALSE(has(outcome.err, "secret"));
  }
  const Outcome told = run(scratch, {"--redis", locked, "--wait-replicas", "1"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_GT(run_of(read_result(scratch / "r.json"), "redis-wait").at("sections"), 0);
}

/// The first run of a point.
const Json& point_of(const Json& runs, std::string_view strategy, int nodes, int clients,
                     int down = 0, int frozen = 0, int slow = 0) {
  for (const Json& run : runs) {
    const Json& load = run.at("load");
    const Json& its = load.at("nodes");
    if (run.at("strategy") == strategy && load.at("clients") == clients &&
        its.at("count") == nodes && its.at("down") == down && its.at("frozen") == frozen &&
        its.at("slow") == slow) {
      return run;
    }
  }
  throw std::runtime_error("no such run");
}

/// On a busy machine the time may be up before the first grant; then the run says that it was
/// disturbed.
bool has_grants(const Json& run) {
  return run.at("acquire").at("count") > 0 || !run.at("generator").at("valid").get<bool>();
}

TEST(QuorumCommand, MeasuresEveryConstellation) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"quorum", "--nodes", "3", "--node-timeout", "1s", "--duration", "200ms",
                          "--clients", "3", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& points = result.at("runs");
  EXPECT_EQ(points.size(), 8U * 5 + 8 * 2) << "five rounds, and two of those with a fault";
  std::map<std::string, std::uint64_t> sections;
  for (const Json& run : points) {
    sections[run.at("strategy")] += run.at("sections").get<std::uint64_t>();
  }
  for (const char* strategy : {"redis-set-nx-lua", "redis-wait"}) {
    EXPECT_GT(sections[strategy], 0U);
    EXPECT_TRUE(has_grants(point_of(points, strategy, 1, 1)));
    EXPECT_EQ(point_of(points, strategy, 1, 1).at("outcomes").at("failed"), 0);
    EXPECT_TRUE(has_grants(point_of(points, strategy, 1, 3)));
  }
  for (const char* strategy : {"redlock", "redlock-parallel"}) {
    EXPECT_GT(sections[strategy], 0U);
    const Json& three = point_of(points, strategy, 3, 1);
    EXPECT_TRUE(has_grants(three));
    if (three.at("sections") > 0) {
      EXPECT_GE(three.at("commands_per_section"), 6);
      EXPECT_GT(three.at("quorum").at("validity").at("count"), 0);
    }
    EXPECT_TRUE(has_grants(point_of(points, strategy, 3, 1, 1))) << "one is down";
    EXPECT_EQ(point_of(points, strategy, 3, 1, 2).at("outcomes").at("acquired"), 0)
        << "two are down";
    EXPECT_EQ(point_of(points, strategy, 3, 1, 2).at("acquire").at("count"), 0);
  }
  // A busy machine may make a run invalid, but the point's fault must not.
  for (const Json& run : points) {
    for (const std::string reason : run.at("generator").at("reasons")) {
      EXPECT_EQ(reason.find("did not answer"), std::string::npos) << reason;
    }
  }
  // It does not wait for the frozen node.
  EXPECT_TRUE(has_grants(point_of(points, "redlock-parallel", 3, 1, 0, 1)));
  // A client that asks one node after the other waits for the slow one.
  const Json& slow = point_of(points, "redlock", 3, 1, 0, 0, 1);
  EXPECT_TRUE(has_grants(slow));
  const Json& waits = slow.at("acquire");
  // The end of the run may cut off the only wait that there was time for.
  const Json& bounds = waits.at("at_least");
  const bool cut_off = std::find(bounds.begin(), bounds.end(), "p50") != bounds.end();
  if (waits.at("count") > 0 && !cut_off) {
    EXPECT_GE(waits.at("p50"), 0.02);
  }
}

}  // namespace
}  // namespace lockbench::test
