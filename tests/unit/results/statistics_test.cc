#include "results/stats/statistics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "results/stats/load_figures.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

using Sample = std::vector<double>;

TEST(Statistics, KnownExamples) {
  const Sample sample{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(*mean(sample), 5);
  EXPECT_NEAR(*stddev(sample), 2.138089935299395, 1e-12);
  EXPECT_DOUBLE_EQ(*median(sample), 4.5);
  EXPECT_DOUBLE_EQ(*median(Sample{3, 1, 2}), 2);
}

TEST(Statistics, PercentilesAreLinearBetweenRanks) {
  const Sample sample{15, 50, 20, 40, 35};  // numpy.percentile([...], 40) is 29
  EXPECT_DOUBLE_EQ(*percentile(sample, 0.4), 29);
  EXPECT_DOUBLE_EQ(*percentile(sample, 0), 15);
  EXPECT_DOUBLE_EQ(*percentile(sample, 1), 50);
}

TEST(Statistics, SamplesThatAreTooSmallHaveNone) {
  EXPECT_FALSE(mean({}).has_value());
  EXPECT_FALSE(median({}).has_value());
  EXPECT_FALSE(stddev(Sample{1}).has_value());
  EXPECT_DOUBLE_EQ(*median(Sample{7}), 7);
}

TEST(Statistics, JainsIndex) {
  using Shares = std::vector<std::uint64_t>;
  EXPECT_DOUBLE_EQ(jain_index(Shares{5, 5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(jain_index(Shares{12, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index(Shares{1, 2, 3}), 36.0 / 42.0);
  EXPECT_DOUBLE_EQ(jain_index(Shares{0, 0}), 1);
  EXPECT_DOUBLE_EQ(jain_index({}), 1);
}

TEST(Statistics, PoissonUpperBounds) {
  // Half the 95 % quantile of chi-squared with 2 (k + 1) degrees of freedom.
  EXPECT_NEAR(poisson_upper_bound(0), 2.995732, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(1), 4.743865, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(10), 16.962219, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(1000), 1053.603122, 1e-6);
  EXPECT_NEAR(poisson_upper_bound(std::nan("")), poisson_upper_bound(0), 0);
  EXPECT_NEAR(poisson_upper_bound(1e18) / 1e18, 1, 1e-8) << "files come from anywhere";
}

TEST(Statistics, PoissonLowerBounds) {
  // Half the 5 % quantile of chi-squared with 2 k degrees of freedom.
  EXPECT_EQ(poisson_lower_bound(0), 0);
  EXPECT_NEAR(poisson_lower_bound(1e-9), 0, 1e-12);
  EXPECT_NEAR(poisson_lower_bound(1), 0.051293, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(10), 5.425406, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(1000), 948.559849, 1e-6);
  EXPECT_NEAR(poisson_lower_bound(1e18) / 1e18, 1, 1e-8);
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Tiers, OfSingleMeasurementsDifferByATenth) {
  EXPECT_THAT(tiers({{0.3}, {0.1}, {0.105}, {0.112}}), ElementsAre(3, 1, 1, 2));
}

TEST(Tiers, StrategiesThatScatterIntoEachOtherShareOne) {
  const std::vector<double> few{1, 1.6, 0.7, 1.3, 0.9}, many{1.4, 0.9, 1.9, 1.1, 1.5};
  EXPECT_THAT(tiers({few, many}), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1, 1.01, 0.99, 1, 1}, {1.4, 1.41, 1.39, 1.4, 1.4}}), ElementsAre(1, 2));
}

TEST(Tiers, ASingleMeasurementScattersLikeTheOthers) {
  EXPECT_THAT(tiers({{1}, {1.2, 1.6, 1}}), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1.2, 1.6, 1}, {4}}), ElementsAre(1, 2));
}

TEST(Tiers, ADifferenceThatIsSureButSmallIsNone) {
  EXPECT_THAT(tiers({{1, 1, 1, 1, 1.0001}, {1.05, 1.05, 1.05, 1.05, 1.0501}}), ElementsAre(1, 1));
}

TEST(Tiers, AKnownScatterCountsBesideRepetitions) {
  // Between single runs a factor of five may be chance, ten is not.
  EXPECT_THAT(tiers({{1}, {5}, {10}}, 0.5), ElementsAre(1, 1, 2));
  // A few similar repetitions do not hide the scatter; more of them resolve smaller differences.
  EXPECT_THAT(tiers({{1, 1.01}, {1.5, 1.51}}, 0.5), ElementsAre(1, 1));
  EXPECT_THAT(tiers({{1, 1.1, 0.9, 1, 1}, {2.5, 2.4, 2.6, 2.5, 2.5}}, 0.5), ElementsAre(1, 2));
}

TEST(Tiers, LongWaitsAreKnownToScatter) {
  for (const char* figure : {"acquire.p99", "acquire.p999", "acquire_service.max",
                             "fairness.by_client.worst_p99", "fairness.longest_wait_seconds"}) {
    EXPECT_GT(known_scatter(figure), 0) << figure;
  }
  for (const char* figure : {"acquire.p50", "release.p99", "sections_per_second"}) {
    EXPECT_EQ(known_scatter(figure), 0) << figure;
  }
}

TEST(Tiers, WhatWasNotMeasuredHasNone) {
  EXPECT_THAT(tiers({{}, {1}}), ElementsAre(0, 1));
  EXPECT_THAT(tiers({}), IsEmpty());
}

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
  EXPECT_EQ(human_number(1.0 / 3600), "0.000278") << "an hourly job";
  EXPECT_EQ(human_number(0.002), "0.002");
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
  // The same control sequence as a C1 byte, as overlong UTF-8, and cut off.
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
