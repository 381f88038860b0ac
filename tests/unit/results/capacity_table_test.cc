#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "results/tables/experiments.h"
#include "results/tables/formats.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("acquire_p99_seconds"));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("confirm,420,415.5,8.3e-05,0.00142,true,false,,0.2,"),
                              HasSubstr("\"late, by 3 ms\"")));
  EXPECT_THAT(lines[1], Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lockbench::results
