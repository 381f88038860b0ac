#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <set>

#include "exporter/collect.h"
#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;
using prometheus::MetricFamily;
using testing::HasSubstr;
using testing::Not;

class CollectRunsTest : public testing::Test {
 protected:
  std::string page() const {
    return prometheus::TextSerializer().Serialize(
        collect(metrics_, {.run = {{"run", "r1"}}, .build = {"1.2", "c0ffee", "Debug"}}));
  }
  std::vector<MetricFamily> families() const { return collect(metrics_, {}); }

  const Descriptor strategy_{.name = "tested", .backend = "store"};
  RunMetrics metrics_{std::vector<const Descriptor*>{&strategy_}};
  test::RunUnderTest run_{strategy_};
};

TEST_F(CollectRunsTest, EverySeriesIsThereBeforeTheFirstRun) {
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("lockbench_sections_total{strategy=\"tested\",backend=\"store\","
                              "outcome=\"acquired\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("lockbench_lost_updates_total{strategy=\"tested\",backend=\"store\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("outcome=\"abandoned\",le=\"+Inf\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("part=\"notified\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("mode=\"shared\",outcome=\"cut_off\",le=\"+Inf\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("fault=\"partition\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_build_info{version=\"1.2\",commit=\"c0ffee\","
                              "build_type=\"Debug\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("backend=\"store\",run=\"r1\",promises_exclusion=\"true\"} 1\n"));
}

TEST_F(CollectRunsTest, NamesAndHelpAreThereAndNoneTwice) {
  std::set<std::string> names;
  for (const MetricFamily& family : families()) {
    EXPECT_TRUE(family.name.starts_with("lockbench_")) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
  }
}

TEST_F(CollectRunsTest, AHistogramsBucketsGrowUpToItsCount) {
  metrics_.run_begins(run_.shared());
  for (const Duration waited : {Duration(1us), Duration(1ms), Duration(2h)}) run_.grant(waited);
  for (const MetricFamily& family : families()) {
    if (family.name != "lockbench_acquire_duration_seconds") continue;
    const auto& histogram = family.metric.front().histogram;
    ASSERT_EQ(histogram.bucket.size(), LatencyBuckets::kBounds);
    EXPECT_DOUBLE_EQ(histogram.bucket.front().upper_bound, 5e-6);
    EXPECT_EQ(histogram.bucket.front().cumulative_count, 1U);
    EXPECT_EQ(histogram.bucket.back().cumulative_count, 2U);
    EXPECT_EQ(histogram.sample_count, 3U);
    EXPECT_DOUBLE_EQ(histogram.sample_sum, 7200.001001);
  }
  metrics_.run_ends(run_.shared(), nullptr);
}

TEST_F(CollectRunsTest, SaysWhichDeploymentIfItHasAName) {
  const std::string text = prometheus::TextSerializer().Serialize(
      collect(metrics_, {.run = {}, .build = {}, .deployments = {{"store", "eu-1"}}}));
  EXPECT_THAT(text, HasSubstr("lockbench_overlaps_total{strategy=\"tested\",backend=\"store\","
                              "deployment=\"eu-1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("reason=\"oom\",deployment=\"eu-1\"} 0\n"));
  EXPECT_THAT(page(), Not(HasSubstr("deployment=")));
}

TEST_F(CollectRunsTest, NothingSaysWhoseLockItIs) {
  metrics_.run_begins(run_.shared());
  run_.grant(1ms);
  EXPECT_THAT(page(), Not(HasSubstr("lockbench:run")));
  metrics_.run_ends(run_.shared(), nullptr);
}

}  // namespace
}  // namespace lockbench::exporter
