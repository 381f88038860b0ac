#include <cmath>
#include <set>

#include "tests/folders.h"
#include "tests/full/prometheus/prometheus.h"
#include "tests/integration/metrics/probe_fixture.h"
#include "tests/support/boards.h"
#include "tests/support/output_of.h"

namespace lockbench::test {
namespace {

const std::filesystem::path source_folder = LOCKBENCH_SOURCE_DIR;

/// With a Prometheus that evaluates the shipped rules.
class ProbeAlertsTest : public ProbeTest {
 protected:
  bool fires(const std::string& alert) const {
    return prometheus_
        .value_of(fmt::format("ALERTS{{job=\"lockbench-probe\",alertname=\"{}\",alertstate=\"firing"
                              "\"}}",
                              alert))
        .has_value();
  }
  Setting with_mutants() const { return {.program = "lockbench_with_mutants"}; }

  Prometheus prometheus_{port_, source_folder / "dashboards/prometheus"};
};

TEST_F(ProbeAlertsTest, ABrokenLockRaisesTheAlarm) {
  const auto program = probe({"test-blind", "--rate", "20"}, with_mutants());
  EXPECT_TRUE(eventually([&] { return fires("LockbenchExclusionBroken"); }));
}

/// The colours that a panel gives the present values of its queries. Those of 99th percentiles are
/// left out: a stall of the machine is one.
std::set<std::string> colours(const Board& panel, const Prometheus& prometheus) {
  std::set<std::string> shown;
  const Board& steps = panel.at("fieldConfig").at("defaults").at("thresholds").at("steps");
  for (const Board& target : panel.at("targets")) {
    const std::string query = target.at("expr");
    if (query.starts_with("histogram_quantile(0.99")) continue;
    for (const double value : prometheus.values_of(with_variables(query, "5s", "60s"))) {
      if (std::isnan(value)) continue;
      std::string colour = steps.at(0).at("color");
      for (const Board& step : steps) {
        if (step.at("value").is_number() && value >= step.at("value")) colour = step.at("color");
      }
      shown.insert(colour);
    }
  }
  return shown;
}

TEST_F(ProbeAlertsTest, ASoundOneDoesNotAndEveryPanelIsGreen) {
  // It takes seconds until it begins, and rates need more than one scrape.
  ASSERT_TRUE(eventually([&] { return prometheus_.value_of("up").has_value(); }));
  const auto program = probe(arguments_of_the_unit());
  ASSERT_TRUE(eventually([&] {
    return prometheus_.value_of("sum(lockbench_contended_grants_total)").value_or(0) >= 3 &&
           prometheus_.value_of("sum(lockbench_renewals_total)").value_or(0) >= 3;
  }));
  for (const Board& board : read_boards(source_folder / "dashboards/grafana")) {
    for (const Board& panel : panels_of(board)) {
      if (panel.at("type") == "table") continue;  // of facts
      EXPECT_THAT(colours(panel, prometheus_), testing::IsSubsetOf({"green"}))
          << board.at("title") << ": " << panel.at("title");
    }
  }
  EXPECT_EQ(prometheus_.value_of("ALERTS{alertstate=\"firing\"}"), std::nullopt);
}

TEST(ProbeUnit, IsRatedBelowThree) {
  const auto [text, status] = output_of(
      "systemd-analyze security --offline=true --no-pager --threshold=29 " LOCKBENCH_SOURCE_DIR
      "/exporter/lockbench-probe.service 2>&1");
  EXPECT_EQ(status, 0) << text;
}

}  // namespace
}  // namespace lockbench::test
