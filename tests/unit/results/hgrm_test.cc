#include <gmock/gmock.h>

#include <sstream>

#include "results/stats/figures.h"
#include "results/tables/formats.h"

namespace lockbench::results {
namespace {

using testing::HasSubstr;

/// 900 samples about 10 µs, 99 about 1 ms, the largest 1.1 ms.
Distribution sample() {
  return {.count = 1000,
          .mean = 0.11e-3,
          .stddev = 0.3e-3,
          .min = 9e-6,
          .max = 1.1e-3,
          .relative_error = 1.0 / 128,
          .buckets = {{1e-7, 3}, {10.111e-6, 897}, {1.015807e-3, 98}, {1.11411e-3, 2}}};
}

TEST(Hgrm, ShowsSamplesBeyondTheHistogramAtTheLargest) {
  Distribution distribution = sample();
  distribution.count += 5;
  distribution.overflow = 5;
  distribution.max = 9000;
  const std::string text = to_hgrm(distribution);
  EXPECT_THAT(text, HasSubstr("\n9000000000.000 1.000000000000       1005\n"));
  EXPECT_THAT(text, HasSubstr("\n    1114.110 0.993750000000       1000         160.00\n"));
}

TEST(Hgrm, HostileDistributionsDoNoHarm) {
  Distribution distribution = sample();
  distribution.relative_error = -1e300;
  distribution.buckets = {{-1, 1}, {1e300, 2}, {0, 3}};
  distribution.max = -5;
  EXPECT_NO_THROW(to_hgrm(distribution));
}

TEST(Hgrm, HasTheLayoutOfHdrHistogramsTools) {
  const std::string text = to_hgrm(sample());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  std::getline(lines, line);
  EXPECT_EQ(line, "       0.100 0.000000000000          3           1.00");
  EXPECT_THAT(text, HasSubstr("      10.111 0.500000000000        900           2.00\n"));
  EXPECT_THAT(text, HasSubstr("\n    1100.000 1.000000000000       1000\n"
                              "#[Mean    =      110.000, StdDeviation   =      300.000]\n"
                              "#[Max     =     1100.000, Total count    =         1000]\n"));
}

TEST(Hgrm, HasWhatWasCutOffToo) {
  Distribution distribution{.count = 9, .max = 5, .buckets = {{1, 9}}};
  distribution.censored = {.count = 1, .buckets = {{5, 1}}};
  const std::string text = to_hgrm(distribution);
  EXPECT_THAT(text, HasSubstr("Total count    =           10]"));
  EXPECT_THAT(text, HasSubstr(" 0.900000000000          9"));
}

TEST(Hgrm, OfNothingHasNoLines) {
  EXPECT_THAT(to_hgrm({}), HasSubstr("1/(1-Percentile)\n\n#[Mean    =        0.000"));
}

TEST(PercentileSteps, AreFiveForEachHalvingOfTheDistance) {
  const Distribution even{
      .count = 100, .max = 2, .buckets = {{0.1, 50}, {1, 40}, {1.5, 8}, {2, 2}}};
  std::vector<double> percents;
  for (const PercentileStep& step : percentile_steps(even)) percents.push_back(step.percent);
  EXPECT_THAT(percents,
              testing::ElementsAre(0, 10, 20, 30, 40, 50, 55, 60, 65, 70, 75, 77.5, 80, 82.5, 85,
                                   87.5, 88.75, 90, 91.25, 92.5, 93.75, 94.375, 95, 95.625, 96.25,
                                   96.875, 97.1875, 97.5, 97.8125, 98.125));
  EXPECT_EQ(percentile_steps(even).front().value, 0.1);
  EXPECT_EQ(percentile_steps(even).back().samples, 100U);
}

}  // namespace
}  // namespace lockbench::results
