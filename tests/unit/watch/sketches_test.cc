#include "watch/sketches.h"

#include <gmock/gmock.h>

#include <chrono>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::SizeIs;

constexpr TimePoint kBegan{1000s};

TEST(PerSecond, TellsOnlyOfSecondsThatItStillKnows) {
  PerSecond events(10);
  for (int second = 0; second <= 20; ++second) events.add(kBegan + second * 1s);
  const auto counts = events.finished(kBegan + 20s, kBegan);
  EXPECT_THAT(counts, SizeIs(9));
  EXPECT_THAT(counts, Each(1U)) << "none of them was empty";
}

TEST(PerSecond, LeavesOutSecondsOfWhichNothingIsKnown) {
  PerSecond events(100);
  for (int second = 0; second < 5; ++second) events.add(kBegan + second * 1s);
  events.leave_out(kBegan + 5s + 500ms, kBegan + 9s + 500ms);
  for (int second = 9; second < 15; ++second) events.add(kBegan + second * 1s + 600ms);
  const auto counts = events.finished(kBegan + 15s, kBegan);
  EXPECT_THAT(counts, SizeIs(9));
  EXPECT_THAT(counts, Each(1U));
  EXPECT_DOUBLE_EQ(events.rate(kBegan + 15s, kBegan), 0.5) << "five of the last ten";
}

TEST(PerSecond, AnOutageOfAnyLengthIsLeftOut) {
  PerSecond events(10);
  events.leave_out(kBegan, kBegan + 24h);
  EXPECT_THAT(events.finished(kBegan + 24h, kBegan), SizeIs(0));
}

}  // namespace
}  // namespace lockbench::watch
