#include <gtest/gtest.h>

#include <stdexcept>

#include "strategies/registry.h"
#include "tests/full/timing/certificate.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

// Rates, ratios and upper bounds of single runs.

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// The result of a run that ended well.
Json result_of(Words arguments) {
  const Scratch scratch;
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--out", "r.json"});
  const Outcome outcome = lockbench(scratch, arguments);
  if (outcome.code != 0) throw std::runtime_error(outcome.err);
  return read_result(scratch / "r.json");
}

TEST(Demand, AQueueServesItsClientsSoonerThanPollingDoes) {
  const Json result = result_of({"redis-set-nx-lua", "redis-queue", "--rate", "200", "--hold",
                                 "1ms", "--clients", "32", "--duration", "3s"});
  if (!are_conclusive(result.at("runs"))) return;
  const auto p99 = [&](std::string_view strategy) {
    return run_of(result, strategy).at("acquire").at("p99").get<double>();
  };
  EXPECT_GT(p99("redis-set-nx-lua"), 2 * p99("redis-queue"));
}

TEST(OpenLoop, StartsSectionsByTheSchedule) {
  const Json result =
      result_of({"redis-set-nx", "--redis", shared_redis().url(), "--rate", "200", "--arrival",
                 "constant", "--duration", "500ms", "--warmup", "100ms", "--keys", "100"});
  if (!are_conclusive(result.at("runs"))) return;
  const Json& lag = run_of(result, "redis-set-nx").at("schedule_lag");
  EXPECT_LE(lag.at("count"), 101) << "half a second of 200 a second";
  EXPECT_GE(lag.at("count"), 95);
}

TEST(Herd, OneIsWokenByAGrantOrAllAre) {
  if (find_strategy("zookeeper") == nullptr) GTEST_SKIP() << "left out of this build";
  constexpr int kClients = 64;
  const Json result = result_of({"zookeeper", "zookeeper-herd", "--clients",
                                 std::to_string(kClients), "--duration", "4s", "--warmup", "2s"});
  if (!are_conclusive(result.at("runs"))) return;
  EXPECT_NEAR(run_of(result, "zookeeper").at("herd_factor").get<double>(), 1, 0.1);
  // Those on their way back to their watch are not woken.
  EXPECT_GT(run_of(result, "zookeeper-herd").at("herd_factor").get<double>(), kClients / 8.0);
}

constexpr double kRtt = 0.010;

Json with_rtt(const char* rtt) {
  return result_of({"redis-set-nx", "--rtt", rtt, "--keys", "per-client", "--clients", "4",
                    "--iterations", "40", "--warmup", "0ms", "--resource", "redis"});
}

TEST(Rtt, IsNothingUnlessAskedFor) {
  const Json result = with_rtt("0s");
  if (!are_conclusive(result.at("runs"))) return;
  EXPECT_LT(run_of(result, "redis-set-nx").at("acquire").at("p50"), kRtt);
}

/// Between reading the counter and writing it there is one round trip to its server.
TEST(Rtt, DoesNotSlowTheCounter) {
  const Json result = with_rtt("10ms");
  if (!are_conclusive(result.at("runs"))) return;
  EXPECT_LT(run_of(result, "redis-set-nx").at("hold").at("p50"), kRtt);
}

/// Sections of four clients on one key that last longer than the TTL.
Json overrun(const std::string& strategy, const Words& more = {}) {
  Words arguments = {strategy, "--ttl",      "300ms",  "--hold",   "700ms", "--clients",
                     "4",      "--duration", "1500ms", "--warmup", "0ms"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return result_of(arguments);
}

TEST(Renewal, OutlastsTheTtl) {
  for (const char* strategy : {"redis-watchdog", "redis-reentrant-notify", "redis-queue"}) {
    const Json result = overrun(strategy);
    if (!are_conclusive(result.at("runs"))) continue;
    const Json& run = run_of(result, strategy);
    EXPECT_TRUE(kept_exclusion(run)) << strategy;
    EXPECT_EQ(run.at("leases_lost"), 0) << strategy;
    EXPECT_EQ(run.at("renewal").at("lost"), 0) << strategy;
    EXPECT_GE(run.at("renewal").at("renewals"), 4) << strategy;
  }
}

TEST(Renewal, TakesTheIntervalAskedFor) {
  const auto renewals = [](const char* every) {
    const Json result = overrun("redis-set-nx-lua", {"--renew", every});
    return are_conclusive(result.at("runs"))
               ? run_of(result, "redis-set-nx-lua").at("renewal").at("renewals").get<int>()
               : 0;
  };
  const int often = renewals("20ms"), seldom = renewals("150ms");
  if (often == 0 || seldom == 0) return;
  EXPECT_GT(often, 2 * seldom);
}

/// Four short runs of a lock without a server, whose work takes so long.
Json record(const Scratch& scratch, const std::string& file, const std::string& hold) {
  const Outcome run =
      lockbench(scratch, {"run", "local-mutex", "--clients", "1", "--hold", hold, "--repeat", "4",
                          "--duration", "250ms", "--warmup", "20ms", "--quiet", "--out", file});
  if (run.code != 0) throw std::runtime_error(run.err);
  return read_result(scratch / file);
}

TEST(Compare, ALongerSectionIsFoundAndFails) {
  const Scratch scratch;
  const Json a = record(scratch, "a.json", "1ms"), b = record(scratch, "b.json", "20ms");
  if (!are_conclusive(a.at("runs")) || !are_conclusive(b.at("runs"))) return;
  const auto compared = [&](const char* before, const char* after) {
    return lockbench(scratch, {"compare", before, after, "--force", "--format", "json", "--fail-on",
                               "sections_per_second<-50%"});
  };
  const auto finding = [](const Outcome& outcome) -> Json {
    for (const Json& one : Json::parse(outcome.out).at("differences")) {
      if (one.at("figure") == "sections_per_second") return one.at("finding");
    }
    throw std::runtime_error("not compared: sections_per_second");
  };
  const Outcome slower = compared("a.json", "b.json"), faster = compared("b.json", "a.json");
  EXPECT_EQ(slower.code, 99) << slower.err;
  EXPECT_EQ(finding(slower), "worse");
  EXPECT_EQ(faster.code, 0) << faster.err;
  EXPECT_EQ(finding(faster), "better");
}

}  // namespace
}  // namespace lockbench::test
