#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "testbed/servers/ports.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/tcp_client.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<std::string> quick(std::vector<std::string> more) {
  more.insert(more.begin(), "local-mutex");
  more.insert(more.end(), {"--out", "result.json"});
  return short_run(more);
}

TEST(MetricsOptionsTest, LingersUntilItIsStoppedWithoutChangingTheOutcome) {
  const Scratch scratch;
  const std::uint16_t port = testbed::free_loopback_port().value();
  Program program(scratch, quick({"--metrics-listen", std::to_string(port), "--linger", "600s"}));
  ASSERT_TRUE(program.says("metrics are served for another"));
  EXPECT_EQ(read_result(scratch / "result.json").at("runs").size(), 1U);
  EXPECT_EQ(http_get(port, "/-/healthy").body, "healthy\n");
  EXPECT_EQ(http_get(port, "/").status, 200);
  EXPECT_THAT(http_get(port, "/metrics").body, HasSubstr("lockbench_build_info{version="));
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().code, 0);
  EXPECT_EQ(http_get(port, "/").status, 0);
}

TEST(CapacityMetrics, ShowEveryStepAndAgreeWithTheResult) {
  const Scratch scratch;
  const std::uint16_t port = testbed::free_loopback_port().value();
  std::vector<std::string> arguments = {"capacity", "local-mutex", "--slo",      "acquire.p99<1ns",
                                        "--hold",   "0s",          "--clients",  "4",
                                        "--time",   "6s",          "--duration", "200ms",
                                        "--warmup", "0ms",         "--out",      "r.json",
                                        "--linger", "600s"};
  arguments.insert(arguments.end(), {"--metrics-listen", std::to_string(port)});
  Program program(scratch, arguments);
  ASSERT_TRUE(program.says("metrics on"));
  const std::string labels = R"({strategy="local-mutex",backend="local")";
  std::set<double> targets;
  double acquired = 0;
  const auto look = [&] {
    const std::string page = http_get(port, "/metrics").body;
    const double now =
        metric_on(page, "lockbench_sections_total" + labels + R"(,outcome="acquired"})");
    EXPECT_GE(now, acquired) << "it only grows, from step to step";
    acquired = now;
    targets.insert(metric_on(page, "lockbench_target_sections_per_second" + labels + "}"));
  };
  ASSERT_TRUE(eventually([&] {
    look();
    return program.says("metrics are served for another", 20ms);
  }));
  EXPECT_GE(targets.size(), 2U) << "a step of the search, and what has no rate";
  const Json result = read_result(scratch / "r.json");
  std::uint64_t all = 0;
  for (const Json& at : result.at("capacity").at(0).at("rates")) {
    all += at.at("acquire").at("count").get<std::uint64_t>();
  }
  // Pages are cached for a while. The preceding closed loop counts, too.
  EXPECT_TRUE(eventually([&] {
    look();
    return acquired > static_cast<double>(all);
  })) << acquired
      << ", but " << all << " in the result";
  program.signal(SIGTERM);
  // Disturbed steps cannot show a miss.
  const bool missed = !result.at("capacity").at(0).at("highest").is_null();
  EXPECT_EQ(program.finish().code, missed ? 99 : 5) << "no rate keeps the objective";
}

}  // namespace
}  // namespace lockbench::test
