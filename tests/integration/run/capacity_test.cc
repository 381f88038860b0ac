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
  EXPECT_FALSE(capacity.at("steps").empty());
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
