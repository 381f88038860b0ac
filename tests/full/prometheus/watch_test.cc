#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>

#include "tests/folders.h"
#include "tests/full/prometheus/prometheus.h"
#include "tests/integration/metrics/probe_fixture.h"
#include "tests/support/boards.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;

const std::filesystem::path watched_dashboards = LOCKBENCH_SOURCE_DIR "/dashboards";

/// A watch of a Redis of its own beside a run on it, scraped by a Prometheus.
class WatchMetricsTest : public testing::Test {
 protected:
  WatchMetricsTest() : redis_(own_redis({.durable = false})) {
    prometheus_ = std::make_unique<Prometheus>(port_, watched_dashboards / "prometheus",
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
  bool has_data(const std::string& expression) const {
    return prometheus_->samples_of(expression) > 0;
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
  // A queue, so that the server tells who waits.
  const auto load = run({"redis-queue", "--clients", "4", "--hold", "5ms", "--duration", "40s"});
  std::vector<std::string> missing;
  const auto all_there = [&] {
    missing.clear();
    const auto check = [&](const std::string& expression, const std::string& where) {
      if (!of_watch(expression) || has_data(expression)) return;
      // Redis tells how many wait, but not for how long.
      if (expression.find("wait_duration") != std::string::npos) return;
      missing.push_back(where + ": " + expression);
    };
    for (const Board& board : read_boards(watched_dashboards / "grafana")) {
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

TEST_F(WatchMetricsTest, PromtoolFindsNoFaultAndNoNameOfALock) {
  ASSERT_TRUE(watch_->says("metrics on"));
  const auto load = run({"redis-set-nx-lua", "--duration", "2s"});
  ASSERT_TRUE(eventually(
      [&] { return prometheus_->value_of("lockbench_watch_acquisitions_total").value_or(0) > 0; }));
  const std::string text = http_get(port_, "/metrics").body;
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("redis-set-nx-lua")));
  const std::string page = scratch_.write("page", text), said = scratch_.write("said", "");
  const std::string command = fmt::format("promtool check metrics <{} >{} 2>&1", page, said);
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(said);
  load->finish();
}

TEST_F(WatchMetricsTest, LocksThatExpireUnderTheirHoldersRaiseAnAlert) {
  ASSERT_TRUE(watch_->says("metrics on"));
  const auto load = run({"redis-set-nx-lua", "--clients", "2", "--ttl", "100ms", "--hold", "600ms",
                         "--duration", "20s"});
  EXPECT_TRUE(
      eventually([&] { return fires("LockbenchLockExpired") || fires("LockbenchLockTakenOver"); }));
  load->signal(SIGTERM);
  load->finish();
}

}  // namespace
}  // namespace lockbench::test
