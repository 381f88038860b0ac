#include "exporter/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <set>

#include "loadgen/run/live_run.h"
#include "tests/support/run_shared.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;
using loadgen::Phase;
using prometheus::MetricFamily;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

template <class Metrics>
std::string page_of(const Metrics& metrics) {
  return prometheus::TextSerializer().Serialize(
      collect(metrics, {.run = {{"run", "r1"}}, .build = {"1.2", "c0ffee", "Debug"}}));
}

class CollectRunsTest : public testing::Test {
 protected:
  std::string page() const { return page_of(metrics_); }
  std::vector<MetricFamily> families() const { return collect(metrics_, {}); }

  const Descriptor strategy_{.name = "tested", .backend = "store"};
  RunMetrics metrics_{std::vector<const Descriptor*>{&strategy_}};
  test::RunUnderTest run_{strategy_};
};

TEST_F(CollectRunsTest, EverySeriesIsThereBeforeTheFirstRun) {
  const std::string text = page();
  for (const char* series :
       {R"(lockbench_sections_total{strategy="tested",backend="store",outcome="acquired"} 0)",
        R"(lockbench_lost_updates_total{strategy="tested",backend="store"} 0)",
        R"(outcome="abandoned",le="+Inf"} 0)", R"(part="notified"} 0)",
        R"(mode="shared",outcome="cut_off",le="+Inf"} 0)", R"(fault="partition"} 0)",
        R"(lockbench_build_info{version="1.2",commit="c0ffee",build_type="Debug"} 1)",
        R"(backend="store",run="r1",promises_exclusion="true"} 1)"}) {
    EXPECT_THAT(text, HasSubstr(std::string(series) + "\n"));
  }
}

TEST_F(CollectRunsTest, NamesAndHelpAreThereAndNoneTwice) {
  for (const auto& all : {families(), collect(WatchMetrics(), {})}) {
    std::set<std::string> names;
    for (const MetricFamily& family : all) {
      EXPECT_TRUE(family.name.starts_with("lockbench_")) << family.name;
      EXPECT_FALSE(family.help.empty()) << family.name;
      EXPECT_TRUE(names.insert(family.name).second) << family.name;
    }
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

/// A run in which every metric of the list has a different value.
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
    // As in the result: what is measured, and of the whole run what the audit needs.
    for (const auto& row : loadgen::kTimings) {
      if (row.exported.name == nullptr) continue;
      const auto* const series = find(families, row.exported);
      ASSERT_NE(series, nullptr) << row.exported.name;
      EXPECT_EQ(series->histogram.sample_count, runs * value_of(row.kind)) << row.exported.name;
    }
    for (const auto& row : loadgen::kCounts) {
      if (row.exported.name == nullptr) continue;
      const auto* const series = find(families, row.exported);
      ASSERT_NE(series, nullptr) << row.exported.name;
      const std::uint64_t sum = runs * (row.whole_run ? 3 : 1) * value_of(row.kind);
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
    const bool is_cut = row.censors != loadgen::Timing::kinds;
    if (row.in_run != nullptr || is_cut) expected += value_of(row.kind);
  }
  EXPECT_EQ(loadgen::overflowed_samples(result), expected);
}

watch::Picture sample_picture() {
  watch::Picture picture;
  watch::SourcePicture source;
  source.facts = {.store = "redis",
                  .endpoint = "redis://h:6379",
                  .way = "CLIENT TRACKING",
                  .accuracy = watch::Accuracy::at_least};
  source.missed = 3;
  source.commands = 77;
  picture.sources.push_back(source);
  watch::FamilyPicture family;
  family.store = "redis";
  family.endpoint = "redis://h:6379";
  family.family = "lock:order:*";
  family.locks = 9;
  family.acquisitions = 12;
  family.expired_while_held = 2;
  family.held_now = 4;
  family.oldest_hold = 90;
  family.holds.record(20ms);
  family.most_waited_for = "lock:order:secret-customer";
  picture.families.push_back(family);
  watch::LockPicture lock;
  lock.lock = "lock:order:secret-customer";
  lock.holder = "owner-hash";
  picture.worst.push_back(lock);
  return picture;
}

class CollectWatchTest : public testing::Test {
 protected:
  std::string page() const { return page_of(metrics_); }

  WatchMetrics metrics_;
};

TEST_F(CollectWatchTest, HasFiguresByFamilyAndBySourceAndWhatIsNotKnownIsNotZero) {
  watch::Picture picture = sample_picture();
  metrics_.show(picture);
  const std::string text = page();
  const std::string family =
      "{store=\"redis\",endpoint=\"redis://h:6379\",family=\"lock:order:*\"}";
  const std::string source = "{store=\"redis\",endpoint=\"redis://h:6379\"}";
  for (const std::string& series :
       {"acquisitions_total" + family + " 12", "expired_while_held_total" + family + " 2",
        "held" + family + " 4", "oldest_hold_seconds" + family + " 90",
        "hold_duration_seconds_count" + family + " 1", "waiters" + family + " Nan",
        "margin_min_seconds" + family + " Nan", "sees" + source + " 1",
        "missed_total" + source + " 3", "commands_total" + source + " 77"}) {
    EXPECT_THAT(text, HasSubstr("lockbench_watch_" + series + "\n"));
  }
  EXPECT_THAT(text, HasSubstr("way=\"CLIENT TRACKING\",accuracy=\"at_least\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_build_info{version=\"1.2\",commit=\"c0ffee\","
                              "build_type=\"Debug\"} 1\n"));
  picture.families[0].waiting_now = 0;
  picture.families[0].margin_min = 0.25;
  metrics_.show(picture);
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_waiters" + family + " 0\n"));
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_margin_min_seconds" + family + " 0.25\n"));
}

TEST_F(CollectWatchTest, NamesTheDeploymentIfItHasAName) {
  metrics_.show(sample_picture());
  Facts facts;
  facts.deployments = {{"redis", "shop"}};
  for (const auto& family : collect(metrics_, facts)) {
    for (const auto& metric : family.metric) {
      const auto is_named = [](const auto& label) {
        return label.name == "deployment" && label.value == "shop";
      };
      const bool of_all = metric.label.empty() || family.name == "lockbench_build_info";
      EXPECT_EQ(std::ranges::any_of(metric.label, is_named), !of_all) << family.name;
    }
  }
}

TEST_F(CollectWatchTest, WhileItIsBlindGaugesOfLocksAreUnknownAndTheReasonIsTold) {
  watch::Picture picture = sample_picture();
  metrics_.show(picture);
  EXPECT_THAT(page(), Not(HasSubstr("lockbench_watch_blind_for_seconds{")));
  picture.families[0].blind = true;
  picture.families[0].renewals_stopped = 3;
  picture.sources[0].sees = false;
  picture.sources[0].blind_for = 12.5;
  picture.sources[0].blind_reason = "AUTH was refused: WRONGPASS invalid username-password pair";
  metrics_.show(picture);
  const std::string family =
      "{store=\"redis\",endpoint=\"redis://h:6379\",family=\"lock:order:*\"}";
  for (const std::string& series :
       {"held" + family + " Nan", "oldest_hold_seconds" + family + " Nan",
        "renewal_stopped" + family + " Nan", "acquisitions_total" + family + " 12",
        "renewals_stopped_total" + family + " 3",
        std::string("blind_for_seconds{store=\"redis\",endpoint=\"redis://h:6379\","
                    "reason=\"auth\"} 12.5")}) {
    EXPECT_THAT(page(), HasSubstr("lockbench_watch_" + series + "\n"));
  }
}

TEST_F(CollectWatchTest, NamesNeitherLocksNorOwners) {
  metrics_.show(sample_picture());
  EXPECT_THAT(page(), Not(HasSubstr("secret-customer")));
  EXPECT_THAT(page(), Not(HasSubstr("owner-hash")));
}

TEST_F(CollectWatchTest, IsReadyWhileEverySourceSees) {
  EXPECT_THAT(metrics_.failing(), ElementsAre("nothing was seen yet"));
  metrics_.show(sample_picture());
  EXPECT_THAT(metrics_.failing(), IsEmpty());
  watch::Picture blind = sample_picture();
  blind.sources[0].sees = false;
  blind.sources[0].blind_reason = "connection refused";
  metrics_.show(blind);
  EXPECT_THAT(metrics_.failing(), ElementsAre("redis://h:6379: connection refused"));
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_sees{store=\"redis\","
                                "endpoint=\"redis://h:6379\"} 0\n"));
}

TEST_F(CollectWatchTest, SaysForHowLongItIsBlindNowAndWhyByThePresentReason) {
  watch::Picture picture = sample_picture();
  watch::SourcePicture& source = picture.sources[0];
  metrics_.show(picture);
  const std::string series =
      "lockbench_watch_blind_for_seconds{store=\"redis\",endpoint=\"redis://h:6379\",reason=";
  EXPECT_THAT(page(), Not(HasSubstr(series)));
  source.sees = false;
  source.blind_reason = "h:6379: the connection was closed";
  source.blind_for = 2;
  metrics_.show(picture);
  EXPECT_THAT(page(), HasSubstr(series + "\"unreachable\"} 2\n"));
  EXPECT_THAT(metrics_.failing(), ElementsAre("redis://h:6379: the connection was closed"))
      << "the address once";
  source.blind_reason = "h:6379: AUTH was refused: WRONGPASS";
  source.blind_for = 30;
  metrics_.show(picture);
  EXPECT_THAT(page(), HasSubstr(series + "\"auth\"} 30\n"));
}

}  // namespace
}  // namespace lockbench::exporter
