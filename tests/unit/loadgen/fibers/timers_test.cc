#include "loadgen/fibers/timers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace lockbench::fibers {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TimePoint at(Duration time) { return TimePoint{} + time; }

class TimersTest : public testing::Test {
 protected:
  /// Which timers expire now.
  std::vector<std::size_t> expired(Duration now) {
    std::vector<std::size_t> which;
    timers_.expire(at(now), [&](const Timed& timed) {
      which.push_back(static_cast<std::size_t>(&timed - timed_.data()));
    });
    return which;
  }

  Timers timers_;
  std::vector<Timed> timed_ = std::vector<Timed>(100);
};

TEST_F(TimersTest, CountTheLatestDeadlineOnly) {
  timers_.arm(timed_[0], at(1s));
  timers_.arm(timed_[0], at(5s));
  timers_.arm(timed_[1], at(3s));
  timers_.arm(timed_[2], at(2s));
  EXPECT_THAT(expired(4s), ElementsAre(2, 1)) << "in the order of their deadlines";
  EXPECT_TRUE(timed_[1].expired);
  EXPECT_FALSE(timed_[0].expired);
  EXPECT_EQ(timers_.next(), at(5s));
  timers_.arm(timed_[0], at(4500ms));
  EXPECT_EQ(timers_.next(), at(4500ms));
  Timers::disarm(timed_[0]);
  EXPECT_THAT(expired(10s), ElementsAre());
  EXPECT_EQ(timers_.next(), TimePoint::max());
}

TEST_F(TimersTest, AgreeWithALookAtAllDeadlines) {
  std::mt19937 random(7);
  std::vector<Duration> deadlines(timed_.size(), Duration::max());
  for (Duration now = 0s; now < 5000ms; now += 1ms) {
    for (int change = 0; change < 5; ++change) {
      const std::size_t which = random() % timed_.size();
      const std::uint32_t kind = random() % 8;
      if (kind > 1) {
        deadlines[which] = now + (1 + random() % 100) * 1ms;
        timers_.arm(timed_[which], at(deadlines[which]));
        continue;
      }
      deadlines[which] = Duration::max();
      if (kind == 0) timers_.remove(timed_[which]);
      Timers::disarm(timed_[which]);
    }
    std::vector<std::size_t> due;
    for (std::size_t which = 0; which < timed_.size(); ++which) {
      if (deadlines[which] > now) continue;
      due.push_back(which);
      deadlines[which] = Duration::max();
    }
    ASSERT_THAT(expired(now), testing::UnorderedElementsAreArray(due)) << now.count();
  }
}

}  // namespace
}  // namespace lockbench::fibers
