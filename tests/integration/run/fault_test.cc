#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

/// A run of private servers, with faults. Whoever lost its lock to one waits for its TTL.
std::vector<std::string> struck(std::vector<std::string> arguments, const std::string& ttl) {
  arguments.insert(arguments.begin(), {"run", "--load", "reacquire", "--ttl", ttl, "--warmup",
                                       "200ms", "--out", "r.json"});
  return arguments;
}

struct Played {
  Outcome outcome;
  Json result;
};

Played play(const std::vector<std::string>& arguments, const std::string& ttl = "500ms") {
  const Scratch scratch;
  Played played{lockbench(scratch, struck(arguments, ttl)), {}};
  EXPECT_NE(played.outcome.code, 1) << played.outcome.err;
  played.result = read_result(scratch / "r.json");
  return played;
}

/// Of the run's only fault.
const Json& mark_of(const Json& run) {
  if (run.at("faults").size() != 1) throw std::runtime_error("not one fault");
  return run.at("faults").front();
}

/// Sections of the points whose interval lies after that time.
int sections_after(const Json& run, double time) {
  int sections = 0;
  for (const Json& point : run.at("series")) {
    if (point.at("t").get<double>() - 1 > time) sections += point.at("sections").get<int>();
  }
  return sections;
}

TEST(RunFault, AKilledStoreComesBackAndTheRunStaysValid) {
  const auto [outcome, result] =
      play({"redis-set-nx-lua", "--fault", "store-kill@1s+500ms", "--duration", "5s"});
  EXPECT_EQ(outcome.code, 0) << "what fails because of the fault is no error: " << outcome.err;
  const Json& run = run_of(result, "redis-set-nx-lua");
  const Json& mark = mark_of(run);
  EXPECT_EQ(mark.at("fault"), "store-kill");
  EXPECT_GE(mark.at("at_seconds"), 1.2);
  EXPECT_GE(mark.at("healed_seconds"), 1.7);
  EXPECT_LT(mark.at("lowest_share"), 0.1);
  EXPECT_GT(
      run.at("outcomes").at("failed").get<int>() + run.at("outcomes").at("unknown").get<int>(), 0);
  EXPECT_GT(sections_after(run, mark.at("healed_seconds")), 0);
  EXPECT_TRUE(kept_exclusion(run)) << "what it had granted was kept";
  for (const Json& reason : run.at("generator").at("reasons")) {
    EXPECT_EQ(reason.get<std::string>().find("restarted"), std::string::npos) << reason;
  }
  EXPECT_EQ(result.at("workload").at("fault"), Json::array({"store-kill@1s+500ms"}));
  EXPECT_NE(outcome.out.find("fault: redis-set-nx-lua: store-kill at"), std::string::npos);
}

TEST(RunFault, AFrozenNodeDoesNotEndTheGrants) {
  const auto [outcome, result] = play({"redlock-parallel", "--node-timeout", "50ms", "--fault",
                                       "node-freeze:2@500ms", "--duration", "3s"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json& run = run_of(result, "redlock-parallel");
  const Json& mark = mark_of(run);
  EXPECT_EQ(mark.at("fault"), "node-freeze:2");
  EXPECT_TRUE(mark.at("healed_seconds").is_null()) << "not before the end";
  EXPECT_GT(sections_after(run, mark.at("at_seconds")), 0);
  // The last two stopped answering.
  const Json& votes = run.at("quorum").at("votes");
  const auto failed = [&](int node) { return votes.at(node).at(3).get<int>(); };
  EXPECT_GT(failed(3), failed(0));
  EXPECT_GT(failed(4), failed(0));
}

TEST(RunFault, APartitionCutsOffItsShareOfTheClients) {
  // Each its own lock, so that those who are cut off do not hold up the others.
  const auto [outcome, result] =
      play({"redis-set-nx-lua", "--keys", "per-client", "--fault", "partition:0.5@500ms+1500ms",
            "--duration", "3s", "--think", "1ms"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json& run = run_of(result, "redis-set-nx-lua");
  EXPECT_GT(mark_of(run).at("lowest_share"), 0.01) << "half go on";
  EXPECT_GT(run.at("acquire").at("max").get<double>() + run.at("release").at("max").get<double>(),
            1.0)
      << "and the others wait for answers until it is healed";
  EXPECT_EQ(run.at("outcomes").at("failed"), 0) << "nothing is lost by it";
  EXPECT_TRUE(kept_exclusion(run));
}

TEST(RunFault, ADelayIsOverWhenItIsHealed) {
  const auto [outcome, result] = play({"redis-set-nx-lua", "--clients", "1", "--fault",
                                       "delay:50ms@500ms+500ms", "--duration", "2s"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json& run = run_of(result, "redis-set-nx-lua");
  EXPECT_GE(run.at("acquire").at("max"), 0.050 * 0.99);
  EXPECT_LT(run.at("acquire").at("p50"), 0.050);
  EXPECT_LT(mark_of(run).at("lowest_share"), 0.5);
}

TEST(RunFault, AReplicaTakesThePlaceOfItsPrimary) {
  const auto [outcome, result] = play({"redis-set-nx-lua", "redis-wait", "--replicas", "2",
                                       "--fault", "failover@1s+300ms", "--duration", "4s"});
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
  for (const char* name : {"redis-set-nx-lua", "redis-wait"}) {
    const Json& run = run_of(result, name);
    EXPECT_LT(mark_of(run).at("lowest_share"), 0.1);
    EXPECT_GT(sections_after(run, mark_of(run).at("healed_seconds")), 0) << name;
  }
  EXPECT_TRUE(kept_exclusion(run_of(result, "redis-wait")));
}

/// Its configuration says still whom it followed before it was promoted.
TEST(RunFault, APromotedReplicaLeadsAgainAfterItsOwnDeath) {
  const auto [outcome, result] =
      play({"redis-set-nx-lua", "--replicas", "1", "--fault", "failover@500ms", "--fault",
            "store-kill@2s+200ms", "--duration", "7s"});
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
  const Json& run = run_of(result, "redis-set-nx-lua");
  ASSERT_EQ(run.at("faults").size(), 2U);
  EXPECT_GT(sections_after(run, run.at("faults").back().at("healed_seconds")), 0);
}

/// Its lock is gone with the server's memory, while the first holder is still at work.
TEST(RunFault, ABrokenPromiseStaysOne) {
  const auto [outcome, result] =
      play({"memcached-add", "--hold", "3s", "--fault", "store-kill@500ms+1ms", "--duration", "4s"},
           "30s");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const Json& audit = run_of(result, "memcached-add").at("audit");
  EXPECT_EQ(audit.at("verdict"), "violated");
  EXPECT_GT(audit.at("overlaps"), 0);
}

}  // namespace
}  // namespace lockbench::test
