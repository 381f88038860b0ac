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

TEST(Capacity, OfAQueueThatIsHeldIsTheLocks) {
  const Scratch scratch;
  Program program(scratch,
                  capacity_of("redis-queue", {"--hold", "2ms", "--slo", "acquire.p99<60ms",
                                              "--duration", "500ms", "--sweep", "clients=1,2,4,8",
                                              "--extrapolate", "clients=1000,rtt=1ms"}));
  const Outcome outcome = program.finish(std::chrono::seconds(120));
  ASSERT_TRUE(outcome.code == 0 || outcome.code == 99) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(violation_of_schema(result), "");
  const Json& capacity = result.at("capacity").at(0);
  EXPECT_EQ(capacity.at("strategy"), "redis-queue");
  EXPECT_EQ(capacity.at("objective"), "acquire.p99<60ms");
  const double lowest = capacity.at("lowest"), highest = capacity.at("highest");
  EXPECT_GT(lowest, 0) << outcome.err;
  EXPECT_GT(highest, lowest);
  // Two milliseconds each: no more than 500 a second can be, however fast the machine is.
  EXPECT_LT(lowest, 530);
  const std::string limit = capacity.at("limit"), reason = capacity.at("limit_reason");
  EXPECT_FALSE(reason.empty());
  int confirming = 0;
  for (const Json& step : capacity.at("steps")) {
    confirming += step.at("purpose").get<std::string>().starts_with("confirm") ? 1 : 0;
  }
  if (capacity.at("confirmed")) {
    EXPECT_GE(confirming, 6) << outcome.err;
    EXPECT_LE(highest, 1.06 * lowest);
    // On a busy machine it may be the generator, which then is said not to be the lock.
    EXPECT_TRUE(limit == "lock" || limit == "generator") << limit << ": " << reason;
    EXPECT_TRUE(has(reason, limit == "lock" ? "the lock was taken " : "not the lock's own limit"))
        << limit << ": " << reason;
  } else {
    EXPECT_EQ(capacity.at("steps").size(), 26U) << "it was not given up early: " << outcome.err;
  }
  EXPECT_EQ(capacity.at("sweep").size(), 4U);
  EXPECT_EQ(capacity.at("models").size(), 2U) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "limit: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "(extrapolated)")) << outcome.out;
}

TEST(Capacity, WhatIsPlannedAndTooMuchIsAMissedThreshold) {
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch,
      capacity_of("redis-queue", {"--hold", "20ms", "--slo", "acquire.p99<1us", "--duration",
                                  "300ms", "--sweep", "off", "--planned-rate", "100"}));
  EXPECT_EQ(outcome.code, 99) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(violation_of_schema(result), "");
  const Json& capacity = result.at("capacity").at(0);
  EXPECT_EQ(capacity.at("lowest"), 0);
  EXPECT_TRUE(capacity.at("utilisation").is_null());
  EXPECT_EQ(capacity.at("sweep").size(), 0U);
  EXPECT_TRUE(has(outcome.out, "no rate kept the objective")) << outcome.out;
}

TEST(Capacity, CtrlCSavesWhatThereIs) {
  const Scratch scratch;
  Program program(scratch, capacity_of("redis-queue", {"redis-fenced", "--hold", "2ms", "--slo",
                                                       "acquire.p99<20ms", "--duration", "1s"}));
  ASSERT_TRUE(program.says("climb"));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(violation_of_schema(result), "");
  EXPECT_TRUE(result.at("interrupted"));
  ASSERT_EQ(result.at("capacity").size(), 1U);
  EXPECT_GE(result.at("capacity").at(0).at("steps").size(), 1U);
  EXPECT_FALSE(result.at("capacity").at(0).at("confirmed"));
  ASSERT_EQ(result.at("skipped").size(), 1U);
  EXPECT_EQ(result.at("skipped").at(0).at("reason"), "interrupted");
}

}  // namespace
}  // namespace lockbench::test
