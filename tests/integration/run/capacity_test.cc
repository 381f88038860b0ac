#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

Words capacity_of(const char* strategy, Words more) {
  Words arguments = {"capacity", strategy, "--warmup", "100ms",
                     "--out",    "r.json", "--redis",  shared_redis().url()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// What was found at a rate is by all its steps, and in the bounds of what can be.
void expect_decided_by_steps(const Json& capacity) {
  std::size_t steps = 0;
  for (const Json& at : capacity.at("rates")) {
    const std::string decision = at.at("decision");
    const std::string said = fmt::format("{}/s: {}", at.at("rate").get<double>(), decision);
    steps += at.at("steps").get<std::size_t>();
    EXPECT_LT(at.at("rate"), 500) << "2 ms each allow no more, however fast the machine is";
    if (decision == "open") continue;
    EXPECT_GE(at.at("steps"), 5) << said;
    EXPECT_GE(at.at("samples"), decision == "kept" ? 100 : 10) << said;
  }
  EXPECT_EQ(steps, capacity.at("steps").size());
}

TEST(Capacity, OfAQueueThatIsHeldIsTheLocks) {
  const Scratch scratch;
  Program program(scratch, capacity_of("redis-queue",
                                       {"--hold", "2ms", "--slo", "acquire.p90<100ms", "--duration",
                                        "500ms", "--time", "60s", "--sweep", "clients=1,2,4,8",
                                        "--extrapolate", "clients=1000,rtt=1ms"}));
  const Outcome outcome = program.finish(std::chrono::seconds(120));
  ASSERT_TRUE(outcome.code == 0 || outcome.code == 99) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& capacity = result.at("capacity").at(0);
  EXPECT_EQ(capacity.at("strategy"), "redis-queue");
  EXPECT_EQ(capacity.at("objective"), "acquire.p90<100ms");
  EXPECT_GT(capacity.at("lowest"), 0) << outcome.err;
  EXPECT_DOUBLE_EQ(capacity.at("ceiling"), 500);
  expect_decided_by_steps(capacity);
  // On a busy machine it may be the generator, which then is said not to be the lock.
  const std::string limit = capacity.at("limit"), reason = capacity.at("limit_reason");
  if (!capacity.at("highest").is_null()) {
    EXPECT_GT(capacity.at("highest"), capacity.at("lowest"));
    EXPECT_TRUE(limit == "lock" || limit == "generator") << limit << ": " << reason;
    EXPECT_TRUE(has(reason, limit == "lock" ? "the lock was taken " : "not the lock's own limit"))
        << limit << ": " << reason;
  }
  EXPECT_EQ(capacity.at("sweep").size(), 4U);
  EXPECT_EQ(capacity.at("models").size(), 2U) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "limit: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "(extrapolated)")) << outcome.out;
}

TEST(Capacity, WhatIsPlannedAndTooMuchIsAMissedThreshold) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, capacity_of("redis-queue", {"--hold", "20ms", "--slo", "acquire.p50<1us",
                                                     "--duration", "300ms", "--time", "8s",
                                                     "--sweep", "off", "--planned-rate", "100"}));
  EXPECT_EQ(outcome.code, 99) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& capacity = result.at("capacity").at(0);
  EXPECT_EQ(capacity.at("lowest"), 0);
  EXPECT_TRUE(capacity.at("utilisation").is_null());
  EXPECT_EQ(capacity.at("sweep").size(), 0U);
  EXPECT_TRUE(has(outcome.out, "was kept at none of the rates")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "planned 100/s: too high")) << outcome.out;
}

TEST(Capacity, CtrlCSavesWhatThereIs) {
  const Scratch scratch;
  Program program(scratch, capacity_of("redis-queue", {"redis-fenced", "--hold", "2ms", "--slo",
                                                       "acquire.p99<20ms", "--duration", "1s"}));
  ASSERT_TRUE(program.says("1 steps"));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(result.at("interrupted"));
  ASSERT_EQ(result.at("capacity").size(), 1U);
  EXPECT_GE(result.at("capacity").at(0).at("steps").size(), 1U);
  EXPECT_FALSE(result.at("capacity").at(0).at("confirmed"));
  ASSERT_EQ(result.at("skipped").size(), 1U);
  EXPECT_EQ(result.at("skipped").at(0).at("reason"), "interrupted");
}

}  // namespace
}  // namespace lockbench::test
