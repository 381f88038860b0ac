#include "exporter/figures.h"

#include <gtest/gtest.h>

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kBegun{1h};

TEST(FairnessWindow, IsTheWholeRunAtFirst) {
  FairnessWindow window(2, kBegun);
  EXPECT_EQ(window.jain({0, 0}, kBegun), 0);
  EXPECT_DOUBLE_EQ(window.jain({4, 4}, kBegun + 1s), 1);
  EXPECT_DOUBLE_EQ(window.jain({8, 0}, kBegun + 2s), 0.5);
}

TEST(FairnessWindow, ForgetsWhatWasLongAgo) {
  FairnessWindow window(2, kBegun);
  // An hour in which both got the same.
  std::uint64_t each = 0;
  TimePoint now = kBegun;
  for (; now < kBegun + 1h; now += 10s) {
    each += 10;
    EXPECT_DOUBLE_EQ(window.jain({each, each}, now), 1);
  }
  // Then one of them starves.
  double jain = 1;
  for (int reading = 0; reading < 7; ++reading, now += 10s) {
    jain = window.jain({each + 10 * (1 + static_cast<std::uint64_t>(reading)), each}, now);
  }
  EXPECT_DOUBLE_EQ(jain, 0.5) << "after a minute nothing else is left";
  // Then nobody gets anything.
  for (int reading = 0; reading < 7; ++reading, now += 10s) {
    jain = window.jain({each + 70, each}, now);
  }
  EXPECT_EQ(jain, 0);
}

}  // namespace
}  // namespace lockbench::exporter
