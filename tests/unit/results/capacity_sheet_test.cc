#include "results/tables/capacity_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/text.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

CapacityStep step(double rate, double p50, double p99, bool met) {
  return {.purpose = "climb",
          .rate = rate,
          .achieved = rate,
          .acquire = {.count = 100, .p50 = p50, .p99 = p99},
          .met = met};
}

TEST(CapacityReadings, SayWhatIsKeptAndWhatLimits) {
  const auto lines = readings(sample_capacity().front());
  EXPECT_THAT(lines, Contains("acquire.p99<20ms is kept up to 400/s and missed from 420/s"));
  EXPECT_THAT(lines, Contains(StartsWith("limit: lock: hold 2 ms")));
  EXPECT_THAT(lines,
              Contains("the planned 200/s are 50 % of what kept the objective: they may grow "
                       "by 100 %"));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("model queue: at rate=400 acquire.p99"),
                                    HasSubstr("error -10 %"), HasSubstr("extrapolated"))));
}

TEST(CapacityReadings, SayWhatIsNotKnown) {
  Capacity capacity = sample_capacity().front();
  capacity.confirmed = false;
  EXPECT_THAT(readings(capacity), Contains(HasSubstr("(not confirmed)")));
  capacity.highest = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(readings(capacity), Contains(HasSubstr("no rate was found that misses it")));
  capacity.headroom = -0.2;
  capacity.utilisation = 1.25;
  EXPECT_THAT(readings(capacity), Contains(HasSubstr("are too many: 125 %")));
}

TEST(CapacityReadings, BeginWithABrokenPromise) {
  std::vector<Capacity> capacities(3, sample_capacity().front());
  capacities[1].violated = std::nullopt;
  capacities[2].violated = true;
  EXPECT_THAT(readings(capacities[2]).front(), StartsWith("clients were not kept apart"));
  for (const std::size_t fine : {0U, 1U}) {
    EXPECT_THAT(readings(capacities[fine]), Not(Contains(HasSubstr("kept apart"))));
  }
  const TextSheet sheet = sheet_of(capacities);
  ASSERT_EQ(sheet.titles.at(6), "violated");
  EXPECT_EQ(sheet.rows.at(0).at(6), "no");
  EXPECT_EQ(sheet.rows.at(1).at(6), "–");
  EXPECT_EQ(sheet.rows.at(2).at(6), "yes");
  const auto lines = lines_of(capacity_csv(capacities));
  EXPECT_THAT(lines.front(), HasSubstr(",violated\r"));
  EXPECT_THAT(lines.back(), HasSubstr(",true\r"));
}

TEST(CapacityChart, StandsInTheOrderOfRatesOnAnAxisOfDecades) {
  Capacity capacity;
  capacity.steps = {step(400, 0.001, 0.1, false), step(100, 0.0001, 0.001, true)};
  const auto lines = lines_of(chart(capacity));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], AllOf(HasSubstr("100 |o"), HasSubstr("kept")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("400 |"), HasSubstr("*|"), HasSubstr("missed")));
  // The same 1 ms stands in the same column, over its label: a third of the way.
  EXPECT_EQ(lines[1].find('*'), lines[2].find('o'));
  EXPECT_EQ(display_width(lines[3].substr(0, lines[3].find("1 ms"))), lines[2].find('o'));
}

TEST(CapacityChart, OfNothingIsNone) { EXPECT_EQ(chart(Capacity()), ""); }

TEST(CapacitySheet, HasARowForEachStrategy) {
  Capacity none;
  none.strategy = "other";
  none.highest = std::numeric_limits<double>::quiet_NaN();
  const TextSheet sheet = sheet_of({sample_capacity().front(), none});
  ASSERT_EQ(sheet.rows.size(), 2U);
  for (const auto& row : sheet.rows) EXPECT_EQ(row.size(), sheet.titles.size());
  EXPECT_THAT(sheet.rows[0], AllOf(Contains("redis-queue"), Contains("400"), Contains("lock")));
  EXPECT_THAT(sheet.rows[1], AllOf(Contains("none"), Contains("–")));
}

TEST(CapacityCsv, HasPlainNumbersAndQuotedReasons) {
  auto capacities = sample_capacity();
  capacities[0].steps[0].reason = "late, by 3 ms";
  capacities[0].steps[0].server_cpu_share = std::numeric_limits<double>::quiet_NaN();
  const auto lines = lines_of(capacity_csv(capacities));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("acquire_p99_seconds"));
  EXPECT_THAT(lines[1],
              AllOf(HasSubstr("confirm-above,,420,415.5,8.3e-05,0.00142,true,false,,0.2,"),
                    HasSubstr("\"late, by 3 ms\"")));
  EXPECT_THAT(lines[2], HasSubstr("sweep,keys=2,,800"));
  EXPECT_THAT(lines[1], Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lockbench::results
