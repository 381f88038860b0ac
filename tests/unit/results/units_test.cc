#include "results/tables/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "results/tables/text.h"

namespace lockbench::results {
namespace {

TEST(Units, Seconds) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(250e-9), "250 ns");
  EXPECT_EQ(human_seconds(83e-6), "83 µs");
  EXPECT_EQ(human_seconds(83.26e-6), "83.3 µs");
  EXPECT_EQ(human_seconds(0.00142), "1.42 ms");
  EXPECT_EQ(human_seconds(12.3), "12.3 s");
  EXPECT_EQ(human_seconds(150), "2.5 min");
  EXPECT_EQ(human_seconds(4320), "1.2 h");
  EXPECT_EQ(human_seconds(-0.005), "-5 ms");
}

TEST(Units, RoundingReachesTheNextUnit) {
  EXPECT_EQ(human_seconds(999.4e-6), "999 µs");
  EXPECT_EQ(human_seconds(999.7e-6), "1 ms");
  EXPECT_EQ(human_seconds(9.996e-3), "10 ms");
  EXPECT_EQ(human_number(999.9), "1k");
  EXPECT_EQ(human_number(99.96), "100");
}

TEST(Units, NumbersAndCounts) {
  EXPECT_EQ(human_number(0), "0");
  EXPECT_EQ(human_number(7.25), "7.25");
  EXPECT_EQ(human_number(0.987), "0.99");
  EXPECT_EQ(human_number(812), "812");
  EXPECT_EQ(human_number(41234), "41.2k");
  EXPECT_EQ(human_number(1.3e6), "1.3M");
  EXPECT_EQ(human_count(9999), "9999");
  EXPECT_EQ(human_count(12345), "12.3k");
}

TEST(Units, WhatIsNotANumberIsADash) {
  EXPECT_EQ(human_seconds(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(human_number(std::numeric_limits<double>::infinity()), "–");
}

TEST(Text, WidthCountsCodePoints) {
  EXPECT_EQ(display_width("83 µs"), 5U);
  EXPECT_EQ(display_width("±–…"), 3U);
}

TEST(Text, ClipCutsBetweenCodePoints) {
  EXPECT_EQ(clip("redlock", 7), "redlock");
  EXPECT_EQ(clip("redlock", 4), "red…");
  EXPECT_EQ(clip("µµµµ", 3), "µµ…");
  EXPECT_EQ(clip("µ", 0), "");
}

TEST(Text, PrintableLeavesNoCommands) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"
                      "d"),
            "a [2Jb c d");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31mµ"),
            " 31mµ");
  // The same command for a terminal of bytes, in a longer form than UTF-8 has, and cut off.
  EXPECT_EQ(printable("\x9b"
                      "31m \xe0\x82\x9b \xc0\x9b \xc2"),
            " 31m" + std::string(9, ' '));
  EXPECT_EQ(printable("µ ≥ 日 \U0001F512"), "µ ≥ 日 \U0001F512");
}

TEST(Text, APageKeepsItsLinesAndItsColors) {
  const std::string page =
      "\x1b[1mname\x1b[0m\na\x1b[2J\x9b"
      "2Jb\n";
  EXPECT_EQ(printable_page(page, true), "\x1b[1mname\x1b[0m\na [2J 2Jb\n");
  EXPECT_EQ(printable_page(page, false), " [1mname [0m\na [2J 2Jb\n");
}

TEST(Text, FoldBreaksBetweenWords) {
  EXPECT_EQ(fold("one two three four", 9), "one two\n  three\n  four");
  EXPECT_EQ(fold("short", 9), "short");
  EXPECT_EQ(fold("unbreakable-word x", 4), "unbreakable-word\n  x");
}

}  // namespace
}  // namespace lockbench::results
