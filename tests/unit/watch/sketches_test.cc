#include "watch/sketches.h"

#include <gtest/gtest.h>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBegan{1000s};

TEST(PerSecond, TellsTheMeanOfTheLatestSeconds) {
  PerSecond events;
  EXPECT_EQ(events.rate(kBegan, kBegan), 0);
  events.add(kBegan, 3);
  EXPECT_EQ(events.rate(kBegan + 500ms, kBegan), 3) << "of the present second";
  for (int second = 1; second <= 40; ++second) events.add(kBegan + second * 1s);
  EXPECT_DOUBLE_EQ(events.rate(kBegan + 40s, kBegan), 1);
  EXPECT_DOUBLE_EQ(events.rate(kBegan + 46s, kBegan), 0.5) << "five of the last ten";
  EXPECT_EQ(events.rate(kBegan + 24h, kBegan), 0);
}

}  // namespace
}  // namespace lockbench::watch
