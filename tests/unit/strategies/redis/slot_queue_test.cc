#include "strategies/redis/client/slot_queue.h"

#include <gtest/gtest.h>

#include <set>

namespace lockbench::redis {
namespace {

/// As where one node of a quorum is always slower than the majority.
TEST(SlotQueue, DoesNotGrowIfItIsNeverEmpty) {
  constexpr int kUnderWay = 3;
  SlotQueue<int> queue;
  std::set<const int*> slots;
  for (int number = 0; number < 1000; ++number) {
    int& slot = queue.push();
    slot = number;
    slots.insert(&slot);
    EXPECT_EQ(queue.back(), number);
    if (number < kUnderWay) continue;
    EXPECT_EQ(queue[0], number - kUnderWay);
    EXPECT_EQ(queue[1], number - kUnderWay + 1);
    queue.pop();
  }
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_LE(slots.size(), 30U) << "some moved when it grew";
}

}  // namespace
}  // namespace lockbench::redis
