#include <gtest/gtest.h>

#include <vector>

#include "loadgen/run/schedule.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

const TimePoint start{1h};

/// From the start until the warm-up is over, with so many sections in each interval.
Duration length_of(WarmUp warm_up, const std::vector<std::uint64_t>& throughput) {
  std::uint64_t sections = 0;
  for (const std::uint64_t more : throughput) {
    if (!warm_up.next_look()) break;
    const TimePoint now = *warm_up.next_look();
    sections += more;
    if (warm_up.is_steady(now, sections)) return now - start;
  }
  return warm_up.latest_end() - start;
}

TEST(WarmUp, IsAsLongAsAskedForWithoutAReasonToWait) {
  const WarmUp plain(start, 700ms, false);
  EXPECT_FALSE(plain.next_look());
  EXPECT_EQ(plain.latest_end(), start + 700ms);
}

TEST(WarmUp, EndsWhenTwoIntervalsAreAlike) {
  EXPECT_EQ(length_of(WarmUp(start, 500ms, true), {100, 300, 500, 610, 600}), 2s);
  EXPECT_EQ(length_of(WarmUp(start, 500ms, true), {500, 400}), 1s);
  EXPECT_EQ(length_of(WarmUp(start, 500ms, true), {400, 501, 400, 400}), 2s);
  EXPECT_EQ(length_of(WarmUp(start, 500ms, true), {0, 0}), 1s) << "nothing gets faster";
}

TEST(WarmUp, IsNoShorterThanAskedFor) {
  EXPECT_EQ(length_of(WarmUp(start, 1800ms, true), {500, 500, 500, 500, 500}), 2s);
}

TEST(WarmUp, IsBounded) {
  std::vector<std::uint64_t> rising;
  for (std::uint64_t now = 1; rising.size() < 30; now *= 2) rising.push_back(now);
  EXPECT_EQ(length_of(WarmUp(start, 500ms, true), rising), 5s);
}

TEST(WarmUp, IsNeverProlongedWhereThereIsNoneOrALongOne) {
  EXPECT_FALSE(WarmUp(start, 0ms, true).next_look());
  const WarmUp long_one(start, 8s, true);
  EXPECT_FALSE(long_one.next_look());
  EXPECT_EQ(long_one.latest_end(), start + 8s);
}

}  // namespace
}  // namespace lockbench::loadgen
