#include <gtest/gtest.h>

#include <csignal>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

TEST(Renew, IsDoneAsAskedAndLeavesAGlobsStrategiesTheirOwnWay) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-setn?", "redis-set-nx-lua", "--redis", shared_redis().url(),
                          "--renew", "20ms", "--clients", "1", "--hold", "150ms", "--duration",
                          "300ms", "--warmup", "0ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(run_of(result, "redis-setnx").at("renewal").is_null());
  const Json& renewal = run_of(result, "redis-set-nx-lua").at("renewal");
  EXPECT_GT(renewal.at("renewals"), 0);
  EXPECT_EQ(renewal.at("lost"), 0);
  EXPECT_EQ(renewal.at("margin").at("count"), renewal.at("renewals"));
}

/// The lock is granted to another client in the midst of each section.
TEST(FencedResource, TurnsStaleWritersAway) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch,
      words("run redis-fenced --redis " + shared_redis().url() +
            " --ttl 100ms --hold 500ms --clients 3 --duration 1500ms --warmup 0ms --wait poll:5ms "
            "--resource redis-fenced --threshold audit.stale_writes_rejected==0 --out r.json"));
  EXPECT_EQ(outcome.code, 3) << "two were inside at once, which fencing does not hinder";
  expect_in(outcome.err, "audit.stale_writes_rejected");
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-fenced");
  const Json& audit = run.at("audit");
  EXPECT_GT(audit.at("overlaps"), 0);
  EXPECT_EQ(audit.at("lost_updates"), 0);
  EXPECT_GT(audit.at("stale_writes_rejected"), 0);
  EXPECT_GT(audit.at("increments"), 0);
  EXPECT_EQ(audit.at("fence_regressions"), 0);
  EXPECT_GT(run.at("leases_lost"), 0);
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty()) << "nothing of the fence is left";
}

TEST(RenewalCommand, MeasuresEachNumberOfLocks) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "1", "--held",
                          "300", "--pairs", "1", "--ttl", "600ms", "--duration", "1ms", "--clients",
                          "2", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& runs = result.at("runs");
  ASSERT_EQ(runs.size(), 4U);
  std::vector<int> held;
  for (const Json& run : runs) {
    held.push_back(run.at("load").at("held_locks"));
    EXPECT_GT(run.at("sections_per_second"), 0);
    EXPECT_EQ(run.contains("costs"), held.back() > 0);
    if (held.back() == 0) continue;
    const Json& margin = run.at("renewal").at("margin");
    EXPECT_GT(margin.at("count"), 0);
    EXPECT_LE(margin.at("max"), 0.6) << "no more can be left than was granted";
  }
  EXPECT_EQ(held, (std::vector{0, 1, 0, 300}));
  expect_in(outcome.out, "300 locks renewed: cost to the other clients");
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty());
}

TEST(RenewalCommand, IsInterruptedAndLeavesNoKey) {
  const Scratch scratch;
  Program program(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "50", "--ttl",
                            "12s", "--out", "r.json"});
  RedisProbe probe(shared_redis().port());
  ASSERT_TRUE(eventually([&] { return probe.keys().size() >= 50; }));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  EXPECT_TRUE(probe.keys().empty());
  EXPECT_TRUE(read_result(scratch / "r.json").at("interrupted"));
}

}  // namespace
}  // namespace lockbench::test
