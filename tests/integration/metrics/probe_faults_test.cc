#include <cmath>
#include <set>
#include <sstream>

#include "tests/folders.h"
#include "tests/integration/metrics/probe_fixture.h"
#include "tests/integration/metrics/prometheus.h"
#include "tests/support/boards.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path source_folder = LOCKBENCH_SOURCE_DIR;

std::string strategy_series(const std::string& name, const std::string& strategy) {
  return fmt::format("{}{{strategy=\"{}\"", name, strategy);
}

/// The arguments that the systemd unit has for the probe, without its files and addresses.
std::vector<std::string> arguments_of_the_unit() {
  for (const std::string& line :
       lines_of(read_file(source_folder / "exporter/lockbench-probe.service"))) {
    if (!line.starts_with("ExecStart=")) continue;
    std::vector<std::string> words;
    std::istringstream text(line);
    for (std::string word; text >> word;) words.push_back(word);
    std::vector<std::string> kept;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "--config" || words[i] == "--metrics-listen") {
        ++i;
      } else {
        kept.push_back(words[i]);
      }
    }
    return kept;
  }
  throw std::runtime_error("the unit has no ExecStart");
}

class ProbeFaultsTest : public ProbeTest {
 protected:
  std::string ask(const std::vector<std::string>& command) {
    return RedisProbe(redis_->port()).ask(command);
  }

  /// The fault is in the message, the label and the readiness.
  std::unique_ptr<Program> expect_reason(const std::string& reason,
                                         const std::function<void()>& strike) {
    auto program = probe({"redis-set-nx-lua", "--rate", "20"});
    EXPECT_TRUE(eventually([&] { return page("/-/ready").status == 200; }));
    const std::string series = fmt::format(
        "lockbench_acquire_failures_total{{strategy=\"redis-set-nx-lua\",backend=\"redis\",reason="
        "\"{}\"",
        reason);
    EXPECT_EQ(metric(series), 0);
    strike();
    EXPECT_TRUE(program->says("redis-set-nx-lua: failing: " + reason + ": ")) << program->said();
    EXPECT_GT(metric(series), 0);
    EXPECT_EQ(page("/-/ready").status, 503);
    EXPECT_THAT(page("/-/ready").body, HasSubstr("redis-set-nx-lua: " + reason));
    EXPECT_EQ(page("/-/healthy").status, 200);
    return program;
  }
};

TEST_F(ProbeFaultsTest, IsNotReadyBeforeItHasWorked) {
  ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto program = probe({"redis-set-nx-lua", "--rate", "20"});
  ASSERT_TRUE(eventually([&] { return page("/-/healthy").status == 200; }));
  EXPECT_EQ(page("/-/ready").status, 503);
}

TEST_F(ProbeFaultsTest, SaysThatItsPasswordIsWrongAndIsReadyWhenItIsRightAgain) {
  RedisProbe before(redis_->port());
  const auto program = expect_reason("auth", [&] {
    before.ask({"ACL", "SETUSER", std::string(testbed::kUser), "resetpass", ">rotated"});
    before.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  });
  before.ask({"ACL", "SETUSER", std::string(testbed::kUser), "resetpass", ">" + redis_->secret()});
  EXPECT_TRUE(program->says("working again after")) << program->said();
  EXPECT_EQ(page("/-/ready").status, 200);
}

TEST_F(ProbeFaultsTest, OneStuckLockOfTwoIsSeenAsLongAsItIsStuck) {
  const auto program = probe({"redis-set-nx-lua", "--rate", "20", "--acquire-timeout", "300ms"});
  std::string key;
  ASSERT_TRUE(eventually([&] {
    for (const std::string& one : RedisProbe(redis_->port()).keys()) {
      if (one.ends_with(":0}")) key = one;
    }
    return !key.empty();
  }));
  const std::string stuck = strategy_series("lockbench_stuck_locks", "redis-set-nx-lua");
  EXPECT_EQ(metric(stuck), 0);
  ask({"SET", key, "somebody"});
  EXPECT_TRUE(eventually([&] { return metric(stuck) == 1; }));
  EXPECT_TRUE(program->says("failing: taken"));
  // The other lock goes on for longer than it takes to count as working.
  const double before = sections("acquired");
  EXPECT_TRUE(eventually([&] { return sections("acquired") > before + 60; }));
  EXPECT_FALSE(program->says("working again", 0s)) << program->said();
  EXPECT_EQ(metric(stuck), 1);
  ask({"DEL", key});
  EXPECT_TRUE(eventually([&] { return metric(stuck) == 0; }));
}

TEST_F(ProbeFaultsTest, KeysThatAreDeletedAreNoticedWithTheSettingsOfTheUnit) {
  const auto program = probe(arguments_of_the_unit());
  const std::string lost = strategy_series("lockbench_leases_lost_total", "redis-set-nx-lua");
  const std::string renewed =
      "lockbench_renewals_total{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome="
      "\"renewed\"";
  EXPECT_TRUE(eventually([&] { return metric(renewed) > 0; }));
  EXPECT_EQ(metric(lost), 0);
  EXPECT_TRUE(eventually([&] {
    ask({"FLUSHALL"});
    return metric(lost) > 0;
  }));
}

TEST_F(ProbeFaultsTest, AnEmptyServerResetsFencingNumbersOnce) {
  const auto program = probe({"redis-fenced", "--rate", "20"});
  const std::string resets = strategy_series("lockbench_fence_resets_total", "redis-fenced");
  const std::string regressions =
      strategy_series("lockbench_fence_regressions_total", "redis-fenced");
  const std::string grants =
      "lockbench_sections_total{strategy=\"redis-fenced\",backend=\"redis\",outcome=\"acquired\"";
  // High numbers, below which the new ones stay.
  ASSERT_TRUE(eventually([&] { return metric(grants) > 60; }));
  EXPECT_EQ(metric(resets), 0);
  ask({"FLUSHALL"});
  ASSERT_TRUE(eventually([&] { return metric(regressions) > 10; }));
  EXPECT_EQ(metric(resets), 2) << "each of the two locks has its own numbers";
}

/// With a Prometheus that evaluates the shipped rules.
class ProbeAlertsTest : public ProbeFaultsTest {
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

TEST_F(ProbeAlertsTest, ASoundOneDoesNotAndEveryPanelHasDataAndIsGreen) {
  // It takes seconds until it begins, and rates need more than one scrape.
  ASSERT_TRUE(eventually([&] { return prometheus_.value_of("up").has_value(); }));
  const auto program = probe(arguments_of_the_unit());
  ASSERT_TRUE(eventually([&] {
    return prometheus_.value_of("sum(lockbench_contended_grants_total)").value_or(0) >= 3 &&
           prometheus_.value_of("sum(lockbench_renewals_total)").value_or(0) >= 3;
  }));
  for (const Board& board : read_boards(source_folder / "dashboards/grafana")) {
    // Asks for a quorum's votes, of which one server has none.
    if (board.at("uid") == "lockbench-redlock") continue;
    for (const Query& query : queries_of(board)) {
      if (query.where.ends_with("annotations")) continue;
      const std::string expression = with_variables(query.expression, "5s", "60s");
      // A probe has none of these.
      if (of_modes_or_transactions(expression) || of_watch(expression)) continue;
      EXPECT_GT(prometheus_.samples_of(expression), 0U) << query.where << ": " << expression;
    }
    for (const Board& panel : panels_of(board)) {
      if (panel.at("type") == "table") continue;  // of facts
      EXPECT_THAT(colours(panel, prometheus_), testing::IsSubsetOf({"green"}))
          << board.at("title") << ": " << panel.at("title");
    }
  }
  EXPECT_EQ(prometheus_.value_of("ALERTS{alertstate=\"firing\"}"), std::nullopt);
}

}  // namespace
}  // namespace lockbench::test
