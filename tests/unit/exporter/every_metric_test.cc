#include <gtest/gtest.h>

#include <algorithm>

#include "exporter/collect.h"
#include "loadgen/run/summary.h"
#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;
using loadgen::Phase;

/// A run in which every metric of the list has a value of its own.
class EveryMetricTest : public testing::Test {
 protected:
  static constexpr int kNodes = 2;

  template <class Kind>
  static std::uint64_t value_of(Kind kind) {
    return static_cast<std::uint64_t>(kind) + 1;
  }

  static void happen(test::RunUnderTest& run, Phase phase, Duration sample = 1ms) {
    for (const auto& row : loadgen::kTimings) {
      for (std::uint64_t i = 0; i < value_of(row.kind); ++i) {
        run.recorder().histograms(phase)[row.kind].record(sample);
      }
    }
    for (const auto& row : loadgen::kCounts) {
      if (static_cast<std::size_t>(row.kind) < loadgen::kClientCounts) {
        run.add(row.kind, value_of(row.kind), phase);
      } else {
        run.recorder().add(phase, row.kind, value_of(row.kind));
      }
    }
    for (int node = 0; node < kNodes; ++node) {
      run.recorder().vote(phase, node, Vote::granted, sample);
    }
  }

  std::unique_ptr<test::RunUnderTest> make_run() const {
    return std::make_unique<test::RunUnderTest>(strategy_, 2, kNodes,
                                                loadgen::make_memory_counter(1));
  }

  static results::Run summary_of(test::RunUnderTest& run) {
    run.endpoints()["redis"] = {"redis://127.0.0.1:7001", "redis://127.0.0.1:7002"};
    results::Run result;
    loadgen::summarise(run.shared(), 2s, result);
    return result;
  }

  /// The series of that metric, or null.
  static const prometheus::ClientMetric* find(const std::vector<prometheus::MetricFamily>& families,
                                              const loadgen::ExportedAs& exported) {
    for (const auto& family : families) {
      if (family.name != exported.name) continue;
      for (const auto& metric : family.metric) {
        const auto has = [&](const char* name, const char* value) {
          return std::any_of(metric.label.begin(), metric.label.end(), [&](const auto& label) {
            return label.name == name && label.value == value;
          });
        };
        if (exported.label != nullptr && !has(exported.label, exported.label_value)) continue;
        if (exported.outcome != nullptr && !has("outcome", exported.outcome)) continue;
        return &metric;
      }
    }
    return nullptr;
  }

  const Descriptor strategy_{.name = "tested", .backend = "redis", .traits = {.nodes = kNodes}};
  RunMetrics metrics_{std::vector<const Descriptor*>{&strategy_}, kNodes};
};

TEST_F(EveryMetricTest, IsInTheResult) {
  const auto run = make_run();
  happen(*run, Phase::unmeasured);
  happen(*run, Phase::measured);
  results::Run result = summary_of(*run);
  for (const auto& row : loadgen::kTimings) {
    if (row.in_run == nullptr) continue;
    const results::Distribution* const distribution = row.in_run(result);
    ASSERT_NE(distribution, nullptr) << value_of(row.kind);
    EXPECT_EQ(distribution->count, value_of(row.kind)) << value_of(row.kind);
  }
  for (const auto& row : loadgen::kCounts) {
    if (row.in_run == nullptr) continue;
    const std::uint64_t* const sum = row.in_run(result);
    ASSERT_NE(sum, nullptr) << value_of(row.kind);
    EXPECT_EQ(*sum, (row.whole_run ? 2 : 1) * value_of(row.kind)) << value_of(row.kind);
  }
}

TEST_F(EveryMetricTest, EveryFieldOfARunHasAMetric) {
  results::Run result;
  const auto has_row = [&](const auto& rows, const auto* field) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return row.in_run != nullptr && row.in_run(result) == field;
    });
  };
  for (const auto& field : results::kRunDistributions) {
    EXPECT_TRUE(has_row(loadgen::kTimings, &(result.*field.member))) << field.name;
  }
  for (const auto& field : results::kRunCounts) {
    EXPECT_TRUE(has_row(loadgen::kCounts, &(result.*field.member))) << field.name;
  }
}

TEST_F(EveryMetricTest, IsExportedAndAddedUpOverRuns) {
  for (std::uint64_t runs = 1; runs <= 2; ++runs) {
    const auto run = make_run();
    metrics_.run_begins(run->shared());
    for (const Phase phase : loadgen::kPhases) happen(*run, phase);
    if (runs == 1) metrics_.run_ends(run->shared(), nullptr);
    if (runs == 1) continue;
    const auto families = collect(metrics_, {});
    // Of three phases the end counts only for the audit.
    for (const auto& row : loadgen::kTimings) {
      if (row.exported.name == nullptr) continue;
      const auto* const series = find(families, row.exported);
      ASSERT_NE(series, nullptr) << row.exported.name;
      EXPECT_EQ(series->histogram.sample_count, runs * 2 * value_of(row.kind)) << row.exported.name;
    }
    for (const auto& row : loadgen::kCounts) {
      if (row.exported.name == nullptr) continue;
      const auto* const series = find(families, row.exported);
      ASSERT_NE(series, nullptr) << row.exported.name;
      const std::uint64_t sum = runs * (row.whole_run ? 3 : 2) * value_of(row.kind);
      EXPECT_DOUBLE_EQ(series->counter.value, static_cast<double>(sum) * row.unit)
          << row.exported.name;
    }
    metrics_.run_ends(run->shared(), nullptr);
  }
}

TEST_F(EveryMetricTest, CountsAsOverflowInEveryDistribution) {
  const auto run = make_run();
  happen(*run, Phase::measured, 2h);
  results::Run result = summary_of(*run);
  std::uint64_t expected = kNodes;
  for (const auto& row : loadgen::kTimings) {
    if (row.in_run != nullptr) expected += value_of(row.kind);
  }
  EXPECT_EQ(loadgen::overflowed_samples(result), expected);
}

}  // namespace
}  // namespace lockbench::exporter
