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
  // Those on their way back to their watch are not woken.
  EXPECT_GT(run_of(result, "zookeeper-herd").at("herd_factor").get<double>(), kClients / 8.0);
}

/// Between reading the counter and writing it there is one round trip to its server.
TEST(Rtt, DoesNotSlowTheCounter) {
  const Json result =
      result_of({"redis-set-nx", "--rtt", "10ms", "--keys", "per-client", "--clients", "4",
                 "--iterations", "40", "--warmup", "0ms", "--resource", "redis"});
  if (!are_conclusive(result.at("runs"))) return;
  EXPECT_LT(run_of(result, "redis-set-nx").at("hold").at("p50"), 0.010);
}

/// What was found at a rate is by all its steps, and in the bounds of what can be. Returns how many
/// steps were disturbed.
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

}  // namespace
}  // namespace lockbench::test
