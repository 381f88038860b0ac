#include "tests/full/prometheus/prometheus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <set>

#include "testbed/servers/ports.h"
#include "tests/folders.h"
#include "tests/integration/metrics/probe_fixture.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/boards.h"
#include "tests/support/output_of.h"
#include "tests/support/tcp_client.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;

const std::filesystem::path dashboards_folder = LOCKBENCH_SOURCE_DIR "/dashboards";

/// Checks a page of metrics with promtool.
void expect_no_fault_in(const std::string& page) {
  const Scratch scratch;
  const std::string file = scratch.write("page", page);
  const auto [said, status] = output_of("promtool check metrics <" + file + " 2>&1");
  EXPECT_EQ(status, 0) << said;
  EXPECT_EQ(said, "");
}

/// One run in which leases are renewed, lost and violated, scraped by a Prometheus from its start
/// until after its end.
class MetricsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<Scratch>();
    port_ = testbed::free_loopback_port().value();
    prometheus_ = std::make_unique<Prometheus>(port_, dashboards_folder / "prometheus");
    // Prometheus needs seconds to begin, and must see the start of the run.
    ASSERT_TRUE(eventually([] { return prometheus_->value_of("up").has_value(); }));
    // Sections of 40 ms under a TTL of 30 ms: only a client that renews keeps its lease. Few keys,
    // so that clients wait for each other and most sections are handed on.
    const std::vector<std::string> arguments = words(
        "run --keys 2 --ttl 30ms --hold exp(40ms) --rate 60 --warmup 0s --duration 2s --resource "
        "redis-fenced --linger 600s --out result.json none redis-set-nx-lua redis-watchdog "
        "redis-fenced redlock --metrics-listen 127.0.0.1:" +
        std::to_string(port_));
    program_ = std::make_unique<Program>(*scratch_, arguments);
    ASSERT_TRUE(program_->says("metrics on"));
    ASSERT_TRUE(program_->says("metrics are served for another", 60s));
    ASSERT_TRUE(eventually([] { return scraped_the_end(); }));
  }

  static void TearDownTestSuite() {
    program_->signal(SIGTERM);
    // Lost leases break exclusion, which the exit code shows.
    const Outcome ended = program_->finish();
    EXPECT_EQ(ended.code, 3) << ended.err;
    program_.reset();
    prometheus_.reset();
    scratch_.reset();
  }

  /// Whether Prometheus has seen the page's present state and has had time to evaluate rules.
  static bool scraped_the_end() {
    const auto seen = prometheus_->value_of(
        "lockbench_sections_total{job=\"lockbench\",strategy=\"redis-fenced\",outcome="
        "\"acquired\"}");
    return seen && *seen > 0 && prometheus_->value_of("lockbench_waiters") == 0 &&
           prometheus_->samples_of("lockbench:error:ratio6h") > 0;
  }

  // NOLINTBEGIN(readability-identifier-naming): members, if of the whole suite
  static inline std::unique_ptr<Scratch> scratch_;
  static inline std::unique_ptr<Prometheus> prometheus_;
  static inline std::unique_ptr<Program> program_;
  static inline std::uint16_t port_ = 0;
  // NOLINTEND(readability-identifier-naming)
};

TEST_F(MetricsTest, PromtoolFindsNoFault) { expect_no_fault_in(http_get(port_, "/metrics").body); }

TEST_F(MetricsTest, PromtoolAgreesWithTheRulesAndTheirTests) {
  for (const char* check : {"check rules recording.yml alerts.yml", "check config prometheus.yml",
                            "test rules alerts_test.yml"}) {
    const auto [said, status] = output_of(fmt::format(
        "cd {} && promtool {} 2>&1", (dashboards_folder / "prometheus").string(), check));
    EXPECT_EQ(status, 0) << check << ": " << said;
  }
}

TEST_F(MetricsTest, EveryQueryOfEveryPanelHasData) {
  for (const Board& board : read_boards(dashboards_folder / "grafana")) {
    for (const Query& query : queries_of(board)) {
      std::string expression = with_variables(query.expression, "60s", "60s");
      // Annotations of faults only exist if there are some.
      if (expression.ends_with(" > 0")) expression.resize(expression.size() - 4);
      const std::size_t samples = prometheus_->samples_of(expression);
      if (of_modes_or_transactions(expression) || of_pools_or_programs(expression)) continue;
      if (of_watch(expression)) continue;
      // Nothing fires, and this is no probe.
      if (has(expression, "ALERTS") || has(expression, "deployment=~\".+\"")) continue;
      EXPECT_GT(samples, 0U) << query.where << ": " << expression;
    }
  }
}

/// Of the panels whose queries `of` knows, while the program runs.
void expect_data_in_panels(std::vector<std::string> arguments, bool (*of)(std::string_view)) {
  const Scratch scratch;
  const std::uint16_t port = testbed::free_loopback_port().value();
  const Prometheus prometheus(port, dashboards_folder / "prometheus");
  ASSERT_TRUE(eventually([&] { return prometheus.value_of("up").has_value(); }));
  arguments.insert(arguments.end(),
                   {"--duration", "60s", "--metrics-listen", fmt::format("127.0.0.1:{}", port)});
  Program program(scratch, arguments);
  std::vector<std::string> missing;
  const auto all_there = [&] {
    missing.clear();
    for (const Board& board : read_boards(dashboards_folder / "grafana")) {
      for (const Query& query : queries_of(board)) {
        const std::string expression = with_variables(query.expression, "5s", "60s");
        if (of(expression) && prometheus.samples_of(expression) == 0) {
          missing.push_back(query.where);
        }
      }
    }
    return missing.empty();
  };
  EXPECT_TRUE(eventually(all_there)) << testing::PrintToString(missing);
  program.signal(SIGTERM);
  program.finish();
}

TEST(ModesAndTransactions, HaveDataInTheirPanels) {
  expect_data_in_panels({"run", "redis-read-write", "--keys", "8", "--shared-share", "0.5",
                         "--locks-per-section", "2"},
                        of_modes_or_transactions);
}

TEST(PoolsAndPrograms, HaveDataInTheirPanels) {
  expect_data_in_panels(
      {"run", "--client", "python3 " LOCKBENCH_SOURCE_DIR "/tests/programs/redis_lock.py", "--pool",
       "4"},
      of_pools_or_programs);
}

/// How many rules the files have.
int shipped_rules() {
  const auto [lines, status] =
      output_of("cd " + (dashboards_folder / "prometheus").string() +
                " && cat recording.yml alerts.yml | grep -cE '^ *- (record|alert): '");
  EXPECT_EQ(status, 0);
  return std::stoi(lines);
}

TEST_F(MetricsTest, EveryRuleIsEvaluatedAndHasData) {
  int rules = 0;
  const Json loaded = prometheus_->get("/api/v1/rules");
  for (const auto& group : loaded.at("groups")) {
    for (const auto& rule : group.at("rules")) {
      ++rules;
      EXPECT_EQ(rule.at("health"), "ok") << rule.dump();
      // A silent alert has no data, but its operands have.
      for (const std::string& operand : metrics_in(rule.at("query").get<std::string>())) {
        if (of_watch(operand)) continue;
        EXPECT_GT(prometheus_->samples_of(operand), 0U) << operand;
      }
    }
  }
  EXPECT_EQ(rules, shipped_rules());
}

/// A watch of a Redis next to a run on it, scraped by a Prometheus.
class WatchMetricsTest : public testing::Test {
 protected:
  WatchMetricsTest() : redis_(own_redis({.durable = false})) {
    prometheus_ = std::make_unique<Prometheus>(port_, dashboards_folder / "prometheus",
                                               std::vector<std::string>{"lockbench-watch"});
    watch_ = std::make_unique<Program>(
        scratch_,
        std::vector<std::string>{"watch", "--redis", redis_->url(), "--locks", "lockbench:*",
                                 "--metrics-listen", std::to_string(port_)});
  }
  ~WatchMetricsTest() override {
    watch_->signal(SIGTERM);
    watch_->finish();
  }

  std::unique_ptr<Program> run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--redis", redis_->url(), "--quiet", "--out", "run.json"});
    return std::make_unique<Program>(scratch_, arguments);
  }
  bool fires(const std::string& alert) const {
    return prometheus_->value_of(fmt::format("ALERTS{{alertname=\"{}\"}}", alert)).has_value();
  }

  Scratch scratch_;
  std::unique_ptr<testbed::Server> redis_;
  const std::uint16_t port_ = testbed::free_loopback_port().value();
  std::unique_ptr<Prometheus> prometheus_;
  std::unique_ptr<Program> watch_;
};

TEST_F(WatchMetricsTest, EveryPanelAndAlertHasData) {
  ASSERT_TRUE(watch_->says("metrics on"));
  // A queue, so that the server shows waiters.
  const auto load = run({"redis-queue", "--clients", "4", "--hold", "5ms", "--duration", "40s"});
  std::vector<std::string> missing;
  const auto all_there = [&] {
    missing.clear();
    const auto check = [&](const std::string& expression, const std::string& where) {
      if (!of_watch(expression) || prometheus_->samples_of(expression) > 0) return;
      // Redis shows how many wait, but not for how long.
      if (has(expression, "wait_duration")) return;
      // It sees all the time.
      if (has(expression, "blind_for")) return;
      missing.push_back(where + ": " + expression);
    };
    for (const Board& board : read_boards(dashboards_folder / "grafana")) {
      for (const Query& query : queries_of(board)) {
        check(with_variables(query.expression, "5s", "60s"), query.where);
      }
    }
    for (const auto& group : prometheus_->get("/api/v1/rules").at("groups")) {
      for (const auto& rule : group.at("rules")) {
        for (const auto& operand : metrics_in(rule.at("query").get<std::string>())) {
          check(operand, rule.at("name"));
        }
      }
    }
    return missing.empty();
  };
  EXPECT_TRUE(eventually(all_there)) << testing::PrintToString(missing);
  EXPECT_FALSE(fires("LockbenchWatchBlind"));
  load->signal(SIGTERM);
  load->finish();
}

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

  Prometheus prometheus_{port_, dashboards_folder / "prometheus"};
};

TEST_F(ProbeAlertsTest, ABrokenLockRaisesTheAlarm) {
  const auto program = probe({"test-blind", "--rate", "20"}, with_mutants());
  EXPECT_TRUE(eventually([&] { return fires("LockbenchExclusionBroken"); }));
}

/// The colours of the present values of a panel's queries, without 99th percentiles, which a stall
/// of the machine may raise.
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
  // Prometheus needs seconds to begin, and rates need more than one scrape.
  ASSERT_TRUE(eventually([&] { return prometheus_.value_of("up").has_value(); }));
  const auto program = probe(arguments_of_the_unit());
  ASSERT_TRUE(eventually([&] {
    const auto of_each = [&](const char* total) {
      return prometheus_.value_of(fmt::format("min(sum by (strategy) ({}))", total)).value_or(0);
    };
    return of_each("lockbench_contended_grants_total") >= 3 &&
           of_each("lockbench_renewals_total") >= 3 && of_each("lockbench_sections_total") >= 30;
  }));
  for (const Board& board : read_boards(dashboards_folder / "grafana")) {
    for (const Board& panel : panels_of(board)) {
      if (panel.at("type") == "table") continue;  // shows facts
      if (panel.at("title") == "Probe reachable") {
        const std::string query = panel.at("targets").at(0).at("expr");
        EXPECT_THAT(prometheus_.values_of(with_variables(query, "5s", "60s")),
                    testing::ElementsAre(1))
            << "of two jobs, one is a probe's";
      }
      EXPECT_THAT(colours(panel, prometheus_), testing::IsSubsetOf({"green"}))
          << board.at("title") << ": " << panel.at("title");
    }
  }
  EXPECT_EQ(prometheus_.value_of("ALERTS{alertstate=\"firing\"}"), std::nullopt);
}

TEST(Units, AreRatedBelowThree) {
  for (const char* unit : {"lockbench-probe.service", "lockbench-watch.service"}) {
    const auto [text, status] = output_of(
        "systemd-analyze security --offline=true --no-pager --threshold=29 " LOCKBENCH_SOURCE_DIR
        "/exporter/" +
        std::string(unit) + " 2>&1");
    EXPECT_EQ(status, 0) << text;
  }
}

}  // namespace
}  // namespace lockbench::test
