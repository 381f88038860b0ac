#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/experiments.h"
#include "results/tables/formats.h"
#include "results/tables/text.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

CapacityRate at(double rate, double p50, double p99) {
  return {.rate = rate, .decision = "open", .acquire = {.count = 100, .p50 = p50, .p99 = p99}};
}

TEST(CapacityFindings, SayWhatIsKeptAndWhatLimits) {
  const auto lines = findings(sample_capacity().front());
  EXPECT_THAT(lines, Contains("acquire.p99<20ms is kept up to 400/s (4800 samples, missed in 0 of "
                              "4 steps), and missed from 420/s (15.1k samples, missed in 5 of 12 "
                              "steps)"));
  EXPECT_THAT(lines, Contains(StartsWith("limit: lock: hold 2 ms")));
  EXPECT_THAT(lines, Contains("planned 200/s: kept, headroom 100 %"));
}

TEST(CapacityFindings, SayWhatIsNotKnown) {
  Capacity capacity = sample_capacity().front();
  capacity.highest = std::numeric_limits<double>::quiet_NaN();
  capacity.rates.back().decision = "open";
  EXPECT_THAT(findings(capacity),
              Contains(HasSubstr("no rate was found that misses it, of those up to 420/s (the hold "
                                 "allows no more than 500/s)")));
  EXPECT_THAT(findings(capacity), Contains(StartsWith("not decided in the time: 420/s")));
  capacity.ceiling.reset();
  EXPECT_THAT(findings(capacity), Contains(HasSubstr("no rate was found that misses it")));
}

TEST(CapacityFindings, TellAPlannedRateThatIsTooHighFromOneThatIsOpen) {
  Capacity capacity = sample_capacity().front();
  const auto planned = [&](double rate) {
    capacity.planned_rate = rate;
    return findings(capacity);
  };
  EXPECT_THAT(planned(410), Contains(StartsWith("planned 410/s: not decided")));
  EXPECT_FALSE(capacity.planned_too_high());
  EXPECT_THAT(planned(480), Contains("planned 480/s: too high, 1.2 times what is kept"));
  EXPECT_TRUE(capacity.planned_too_high());
  capacity.highest = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(capacity.planned_too_high());
  planned(500);
  EXPECT_TRUE(capacity.planned_too_high()) << "the ceiling forbids it";
}

TEST(CapacityChart, LeavesOutWhatIsNoTime) {
  Capacity capacity{.rates = {at(10, 0.001, 0.002),
                              at(20, 0.001, std::numeric_limits<double>::quiet_NaN()),
                              at(30, 0.001, -1)}};
  EXPECT_THAT(lines_of(chart(capacity)), testing::SizeIs(3)) << "a title, a rate and the axis";
}

TEST(CapacityFindings, BeginWithABrokenPromise) {
  std::vector<Capacity> capacities(3, sample_capacity().front());
  capacities[1].violated = std::nullopt;
  capacities[2].violated = true;
  EXPECT_THAT(findings(capacities[2]).front(), StartsWith("exclusion was violated"));
  for (const std::size_t fine : {0U, 1U}) {
    EXPECT_THAT(findings(capacities[fine]), Not(Contains(HasSubstr("exclusion"))));
  }
  const Table table = *chosen(capacity_table(capacities), {"violated"});
  EXPECT_EQ(table.rows.at(0).front().text, "no");
  EXPECT_EQ(table.rows.at(1).front().text, "–");
  EXPECT_EQ(table.rows.at(2).front().text, "yes");
  const auto lines = lines_of(to_csv(step_table(capacities)));
  EXPECT_THAT(lines.front(), HasSubstr(",violated\r"));
  EXPECT_THAT(lines.back(), HasSubstr(",true\r"));
}

TEST(CapacityChart, StandsInTheOrderOfRatesOnAnAxisOfDecades) {
  Capacity capacity;
  capacity.rates = {at(100, 0.0001, 0.001), at(400, 0.001, 0.1)};
  capacity.rates[1].steps = 12;
  capacity.rates[1].missed_steps = 5;
  const auto lines = lines_of(chart(capacity));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], AllOf(HasSubstr("100 |o"), HasSubstr("open")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("400 |"), HasSubstr("*|"), HasSubstr("5 of 12")));
  // The same 1 ms stands in the same column, over its label: a third of the way.
  EXPECT_EQ(lines[1].find('*'), lines[2].find('o'));
  EXPECT_EQ(display_width(lines[3].substr(0, lines[3].find("1 ms"))), lines[2].find('o'));
}

TEST(CapacityChart, OfNothingIsNone) { EXPECT_EQ(chart(Capacity()), ""); }

TEST(CapacityTable, HasARowForEachStrategy) {
  Capacity none;
  none.strategy = "other";
  none.highest = std::numeric_limits<double>::quiet_NaN();
  const Table table = capacity_table({sample_capacity().front(), none});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(texts_of(table.rows[0]),
              AllOf(Contains("redis-queue"), Contains("400"), Contains("lock"), Contains("5 of 12"),
                    Contains("88.0 %"), Contains("0.5")));
  EXPECT_THAT(texts_of(table.rows[1]), AllOf(Contains("none"), Contains("–")));
}

TEST(CapacityCsv, HasPlainNumbersAndQuotedReasons) {
  auto capacities = sample_capacity();
  capacities[0].steps[0].reason = "late, by 3 ms";
  capacities[0].steps[0].server_cpu_share = std::numeric_limits<double>::quiet_NaN();
  const auto lines = lines_of(to_csv(step_table(capacities)));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("acquire_p99_seconds"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("confirm,,420,415.5,8.3e-05,0.00142,true,false,,0.2,"),
                              HasSubstr("\"late, by 3 ms\"")));
  EXPECT_THAT(lines[2], HasSubstr("sweep,keys=2,,800"));
  EXPECT_THAT(lines[1], Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lockbench::results
