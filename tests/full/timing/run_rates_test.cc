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

TEST(Herd, OneIsWokenByAGrantOrAllAre) {
  constexpr int kClients = 64;
  const Json result = result_of({"zookeeper", "zookeeper-herd", "--clients",
                                 std::to_string(kClients), "--duration", "4s", "--warmup", "2s"});
  if (!are_conclusive(result.at("runs"))) return;
  EXPECT_NEAR(run_of(result, "zookeeper").at("herd_factor").get<double>(), 1, 0.1);
  // Clients on their way back to their watch are not woken.
  EXPECT_GT(run_of(result, "zookeeper-herd").at("herd_factor").get<double>(), kClients / 8.0);
}

/// Expects that each rate's verdict is based on all its steps and plausible. Returns the number of
/// disturbed steps.
int expect_decided_by_steps(const Json& capacity) {
  int invalid = 0;
  for (const Json& at : capacity.at("rates")) {
    const std::string decision = at.at("decision");
    invalid += at.at("invalid_steps").get<int>();
    EXPECT_LT(at.at("rate"), 500) << "2 ms each allow no more, however fast the machine is";
    if (decision == "open") continue;
    EXPECT_GE(at.at("steps"), 5) << at;
    EXPECT_GE(at.at("samples"), decision == "kept" ? 100 : 10) << at;
  }
  return invalid;
}

TEST(Capacity, OfAQueueThatIsHeldIsTheLocks) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"capacity", "redis-queue", "--redis", shared_redis().url(), "--warmup",
                          "100ms", "--hold", "2ms", "--slo", "acquire.p90<100ms", "--duration",
                          "500ms", "--time", "60s", "--out", "r.json"});
  const Json capacity = read_result(scratch / "r.json").at("capacity").at(0);
  const int invalid = expect_decided_by_steps(capacity);
  EXPECT_DOUBLE_EQ(capacity.at("ceiling"), 500);
  if (invalid > 0) return;  // the machine had other work
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(capacity.at("lowest"), 0);
  EXPECT_GT(capacity.at("highest"), capacity.at("lowest"));
  EXPECT_EQ(capacity.at("limit"), "lock") << capacity.at("limit_reason");
}

// Fall and recovery of throughput under a fault.

/// The strategy's run; empty if it was disturbed.
Json struck(const std::string& strategy, const std::vector<std::string>& more) {
  const Scratch scratch;
  std::vector<std::string> arguments = {"run",   strategy,   "--load", "reacquire", "--ttl",
                                        "500ms", "--warmup", "200ms",  "--out",     "r.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = lockbench(scratch, arguments);
  const Json result = read_result(scratch / "r.json");
  if (!are_conclusive(result.at("runs"))) return {};
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return run_of(result, strategy);
}

/// Sections in the points after that time.
int sections_after(const Json& run, double time) {
  int sections = 0;
  for (const Json& point : run.at("series")) {
    if (point.at("t").get<double>() - 1 > time) sections += point.at("sections").get<int>();
  }
  return sections;
}

TEST(FaultDepth, NobodyIsServedUntilAKilledStoreIsBackOrItsReplicaTakesItsPlace) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"redis-set-nx-lua", {"--fault", "store-kill@1s+500ms", "--duration", "5s"}},
      {"redis-wait", {"--replicas", "2", "--fault", "failover@1s+300ms", "--duration", "4s"}}};
  for (const auto& [strategy, options] : cases) {
    const Json run = struck(strategy, options);
    if (run.is_null()) continue;
    const Json& mark = run.at("faults").front();
    EXPECT_LT(mark.at("lowest_share"), 0.1) << strategy;
    EXPECT_GT(sections_after(run, mark.at("healed_seconds")), 0) << strategy;
  }
}

}  // namespace
}  // namespace lockbench::test
