#include "loadgen/record/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::IsEmpty;

void record(ClientWaits& waits, int client, int times, Duration wait) {
  for (int i = 0; i < times; ++i) waits.record(client, wait, false);
}

TEST(ClientWaits, AClientWithManyGrantsWeighsAsMuchAsOneWithFew) {
  ClientWaits waits(3);
  record(waits, 0, 10'000, 1ms);
  record(waits, 1, 10, 1s);
  record(waits, 2, 10, 1s);
  const auto figures = waits.by_client();
  ASSERT_TRUE(figures);
  // Over all waits it would be 1 ms, as far as the 99th percentile.
  EXPECT_NEAR(figures->p50, 1, 0.04);
  EXPECT_NEAR(figures->worst_p99, 1, 0.04);
  EXPECT_THAT(figures->at_least, IsEmpty());
}

TEST(ClientWaits, WaitsThatWereCutOffAreLowerBounds) {
  ClientWaits waits(2);
  record(waits, 0, 1000, 1ms);
  record(waits, 1, 1, 1ms);
  waits.record(1, 3s, true);
  const auto figures = waits.by_client();
  EXPECT_NEAR(figures->worst_p99, 3, 0.1);
  EXPECT_THAT(figures->at_least, Contains("worst_p99"));
  EXPECT_THAT(figures->at_least, Contains("p99"));
  EXPECT_THAT(figures->at_least, testing::Not(Contains("p50")));
}

TEST(ClientWaits, WhoeverWaitedAtTheEndOfAnEvenRunChangesNothing) {
  ClientWaits waits(1);
  record(waits, 0, 1000, 10ms);
  waits.record(0, 4ms, true);
  EXPECT_THAT(waits.by_client()->at_least, IsEmpty());
}

TEST(ClientWaits, ClientsWithoutWaitsDoNotCount) {
  ClientWaits waits(2);
  EXPECT_EQ(waits.by_client(), std::nullopt);
  record(waits, 1, 5, 2ms);
  EXPECT_NEAR(waits.by_client()->p50, 0.002, 1e-4);
}

TEST(ClientWaits, OfNoTimeAndOfMoreThanAnHourHaveAPlace) {
  ClientWaits waits(2);
  waits.record(0, 0ns, false);
  waits.record(1, 2h, false);
  EXPECT_NEAR(waits.by_client()->worst_p99, 3600, 120);
  EXPECT_NEAR(waits.by_client()->p50, 0, 1e-9);
}

TEST(ClientWaits, OfNobody) { EXPECT_EQ(ClientWaits(0).by_client(), std::nullopt); }

}  // namespace
}  // namespace lockbench::loadgen
