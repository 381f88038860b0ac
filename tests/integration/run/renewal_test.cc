#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

struct Ran {
  int code = 0;
  Json run;
  std::string err;
};

/// Work that takes more than twice the TTL, by four clients on one key.
Ran overrun(const std::string& strategy, Words more = {}) {
  const Scratch scratch;
  Words arguments = {"run",       strategy, "--redis",    shared_redis().url(),
                     "--ttl",     "300ms",  "--hold",     "700ms",
                     "--clients", "4",      "--duration", "1500ms",
                     "--warmup",  "0ms",    "--wait",     "poll:20ms",
                     "--out",     "r.json"};
  // Some have a way to wait of their own.
  if (strategy == "redis-reentrant-notify" || strategy == "redis-queue") {
    arguments.erase(arguments.end() - 4, arguments.end() - 2);
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = lockbench(scratch, arguments);
  const Json result = read_result(scratch / "r.json");
  return {outcome.code, run_of(result, strategy), outcome.err};
}

constexpr int kFine = 0, kExclusionBroken = 3;

TEST(Overrun, BreaksALockThatIsNotRenewed) {
  const Ran ran = overrun("redis-set-nx-lua");
  EXPECT_EQ(ran.code, kExclusionBroken) << ran.err;
  EXPECT_GT(ran.run.at("audit").at("overlaps"), 0);
  EXPECT_GT(ran.run.at("leases_lost"), 0);
  EXPECT_GT(ran.run.at("loss_to_knowledge").at("count"), 0);
  EXPECT_TRUE(ran.run.at("renewal").is_null());
}

class RenewedLock : public testing::TestWithParam<const char*> {};

TEST_P(RenewedLock, OutlastsItsTtl) {
  const Ran ran = overrun(GetParam());
  EXPECT_EQ(ran.code, kFine) << ran.err;
  EXPECT_TRUE(kept_exclusion(ran.run));
  EXPECT_EQ(ran.run.at("leases_lost"), 0);
  const Json& renewal = ran.run.at("renewal");
  EXPECT_GE(renewal.at("renewals"), 4) << "two sections of seven tenths of a second at least";
  EXPECT_EQ(renewal.at("lost"), 0);
  EXPECT_EQ(renewal.at("margin").at("count"), renewal.at("renewals"));
  EXPECT_LE(renewal.at("margin").at("max"), 0.3) << "no more can be left than was granted";
  EXPECT_EQ(renewal.at("slip").at("count"), renewal.at("renewals"));
}

INSTANTIATE_TEST_SUITE_P(All, RenewedLock,
                         testing::Values("redis-watchdog", "redis-reentrant-notify",
                                         "redis-queue"));

TEST(Renew, AutoKeepsALockThatIsNotRenewedByItself) {
  const Ran ran = overrun("redis-set-nx-lua", {"--renew", "auto"});
  EXPECT_EQ(ran.code, kFine) << ran.err;
  EXPECT_GE(ran.run.at("renewal").at("renewals"), 4);
}

TEST(Renew, AnIntervalIsTaken) {
  const auto renewals = [](const char* every) {
    const Ran ran = overrun("redis-set-nx-lua", {"--renew", every});
    EXPECT_EQ(ran.code, kFine) << ran.err;
    return ran.run.at("renewal").at("renewals").get<int>();
  };
  EXPECT_GT(renewals("20ms"), 2 * renewals("150ms"));
}

TEST(Renew, OffLetsAWatchdogsLockExpire) {
  const Ran ran = overrun("redis-watchdog", {"--renew", "off"});
  EXPECT_EQ(ran.code, kExclusionBroken) << ran.err;
  EXPECT_TRUE(ran.run.at("renewal").is_null());
}

TEST(Renew, ACapEndsIt) {
  const Ran ran = overrun("redis-watchdog", {"--renew-cap", "400ms"});
  EXPECT_EQ(ran.code, kExclusionBroken) << ran.err;
  EXPECT_GT(ran.run.at("renewal").at("renewals"), 0);
}

TEST(FencedResource, TurnsStaleWritersAway) {
  const Ran ran = overrun("redis-fenced", {"--resource", "redis-fenced"});
  EXPECT_EQ(ran.code, kExclusionBroken) << "two were inside at once, which fencing does not hinder";
  const Json& audit = ran.run.at("audit");
  EXPECT_GT(audit.at("overlaps"), 0);
  EXPECT_EQ(audit.at("lost_updates"), 0);
  EXPECT_GT(audit.at("stale_writes_rejected"), 0);
  EXPECT_GT(audit.at("increments"), 0);
  EXPECT_EQ(audit.at("fence_regressions"), 0);
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty()) << "nothing of the fence is left";
}

TEST(FencedResource, RejectionsAreInEveryFormatAndInThresholds) {
  const Scratch scratch;
  const auto arguments = [&](const char* format) {
    return Words{"run",         "redis-fenced",
                 "--redis",     shared_redis().url(),
                 "--ttl",       "100ms",
                 "--hold",      "250ms",
                 "--clients",   "3",
                 "--duration",  "700ms",
                 "--warmup",    "0ms",
                 "--wait",      "poll:20ms",
                 "--out",       "r.json",
                 "--resource",  "redis-fenced",
                 "--format",    format,
                 "--threshold", "audit.stale_writes_rejected==0"};
  };
  const Outcome table = lockbench(scratch, arguments("table"));
  EXPECT_NE(table.out.find("rejected"), std::string::npos) << table.out;
  EXPECT_NE(table.err.find("audit.stale_writes_rejected"), std::string::npos) << table.err;
  const Outcome csv = lockbench(scratch, arguments("csv"));
  const auto rows = read_csv(csv.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_GT(std::stod(rows[0].at("stale_writes_rejected")), 0);
  EXPECT_GT(std::stod(rows[0].at("leases_lost")), 0);
}

TEST(FencedResource, CannotHelpWithoutNumbers) {
  const Ran ran = overrun("redis-set-nx-lua", {"--resource", "redis-fenced"});
  EXPECT_GT(ran.run.at("audit").at("lost_updates"), 0);
  EXPECT_EQ(ran.run.at("audit").at("stale_writes_rejected"), 0);
}

TEST(Renew, LeavesAGlobsStrategiesTheirOwnWay) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-setn?", "redis-set-nx-lua", "--redis", shared_redis().url(),
                          "--renew", "20ms", "--clients", "1", "--hold", "150ms", "--ttl", "5s",
                          "--duration", "300ms", "--warmup", "0ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(run_of(result, "redis-setnx").at("renewal").is_null());
  EXPECT_GT(run_of(result, "redis-set-nx-lua").at("renewal").at("renewals"), 0);
  EXPECT_GT(run_of(result, "redis-set-nx-lua").at("commands_per_section"), 3)
      << "a lock, a release, and at least two renewals";
}

TEST(Waiting, ByNotificationIsNoBackoff) {
  // Asked for, and of the strategies' own.
  const std::vector<std::pair<std::string, Words>> ways{{"redis-set-nx-lua", {"--wait", "notify"}},
                                                        {"redis-reentrant-notify", {}},
                                                        {"redis-queue", {}}};
  for (const auto& [strategy, wait] : ways) {
    SCOPED_TRACE(strategy);
    const Scratch scratch;
    // With some time between sections, as who never pauses takes the lock again before who was
    // told.
    Words arguments{"run",       strategy, "--redis",    shared_redis().url(),
                    "--clients", "4",      "--hold",     "2ms",
                    "--think",   "5ms",    "--duration", "500ms",
                    "--warmup",  "0ms",    "--out",      "r.json"};
    arguments.insert(arguments.end(), wait.begin(), wait.end());
    const Outcome outcome = lockbench(scratch, arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json result = read_result(scratch / "r.json");
    if (!wait.empty()) {
      EXPECT_EQ(result.at("workload").at("wait"), "notify");
    }
    const Json& run = run_of(result, strategy);
    EXPECT_GT(run.at("wait").at("notified_seconds"), 0);
    EXPECT_EQ(run.at("wait").at("backoff_seconds"), 0);
    EXPECT_GT(run.at("herd_factor"), 0);
  }
}

TEST(Waiting, ByPollingIsBackoff) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "redis-set-nx-lua", "--redis", shared_redis().url(), "--clients",
                          "4", "--hold", "2ms", "--wait", "poll:1ms", "--iterations", "50",
                          "--warmup", "0ms", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& polling = run_of(result, "redis-set-nx-lua");
  EXPECT_EQ(polling.at("wait").at("notified_seconds"), 0);
  EXPECT_GT(polling.at("wait").at("backoff_seconds"), 0);
}

TEST(RenewalCommand, MeasuresBothWaysToRenew) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "1", "--held",
                          "300", "--most-threads", "100", "--pairs", "1", "--ttl", "600ms",
                          "--duration", "1ms", "--clients", "2", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& experiment = result.at("experiment");
  EXPECT_EQ(experiment.at("name"), "renewal");
  const Json& points = experiment.at("points");
  ASSERT_EQ(points.size(), 3U) << "a thread per lock only up to a hundred";
  for (const Json& point : points) {
    EXPECT_EQ(point.at("lost"), 0);
    EXPECT_EQ(point.at("failures"), 0);
    EXPECT_GT(point.at("sections_per_second"), 0);
    EXPECT_GT(point.at("baseline_sections_per_second"), 0);
    EXPECT_GT(point.at("margin").at("count"), 0);
    EXPECT_LE(point.at("margin").at("max"), 0.6);
  }
  EXPECT_EQ(points[0].at("mode"), "batched");
  EXPECT_EQ(points[1].at("mode"), "thread-per-lock");
  EXPECT_EQ(points[2].at("held"), 300);
  EXPECT_LE(points[2].at("threads"), 2);
  const double every_third_of_the_ttl = 300 / 0.2;
  EXPECT_NEAR(points[2].at("renewals_per_second"), every_third_of_the_ttl, 150);
  EXPECT_NE(outcome.out.find("300 locks renewed in batches"), std::string::npos) << outcome.out;
  RedisProbe probe(shared_redis().port());
  EXPECT_TRUE(probe.keys().empty());
}

TEST(RenewalCommand, IsInterruptedAndLeavesNoKey) {
  const Scratch scratch;
  Program program(scratch, {"renewal", "--redis", shared_redis().url(), "--held", "50", "--ttl",
                            "12s", "--out", "r.json"});
  ASSERT_TRUE(program.says("50 held, batched: pair 1"));
  RedisProbe probe(shared_redis().port());
  ASSERT_TRUE(eventually([&] { return probe.keys().size() >= 50; }));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  EXPECT_TRUE(probe.keys().empty());
  EXPECT_NO_THROW(read_result(scratch / "r.json"));
}

}  // namespace
}  // namespace lockbench::test
