#include "results/stats/compared_figures.h"

#include <gtest/gtest.h>

namespace lockbench::results {
namespace {

Good direction(const std::string& path) { return compared_figure(path).good; }

TEST(ComparedFigure, KnowsWhichWayIsBetter) {
  for (const char* path : {"sections_per_second", "sections", "outcomes.acquired",
                           "renewal.margin.p50", "quorum.validity.min", "fairness.jain"}) {
    EXPECT_EQ(direction(path), Good::higher) << path;
  }
  for (const char* path : {"acquire.p999", "fairness.longest_wait_seconds", "renewal.slip.max",
                           "replication.wait.p99", "commands_per_section"}) {
    EXPECT_EQ(direction(path), Good::lower) << path;
  }
  for (const char* path : {"acquire.count", "renewal.margin.count", "acquire.histogram.overflow",
                           "generator.cpu_share", "wait.backoff_seconds"}) {
    EXPECT_EQ(direction(path), Good::unknown) << path;
  }
}

TEST(ComparedFigure, KnowsTimes) {
  EXPECT_EQ(compared_figure("renewal.margin.p50").unit, Unit::seconds);
  EXPECT_EQ(compared_figure("fairness.longest_wait_seconds").unit, Unit::seconds);
  EXPECT_EQ(compared_figure("sections").unit, Unit::count);
}

}  // namespace
}  // namespace lockbench::results
