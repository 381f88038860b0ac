#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "testbed/servers/ports.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/http_client.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;

/// Acquisitions at all of a capacity's rates.
std::uint64_t acquired_in(const Json& capacity) {
  std::uint64_t all = 0;
  for (const Json& at : capacity.at("rates"))
    all += at.at("acquire").at("count").get<std::uint64_t>();
  return all;
}

TEST(CapacityMetrics, ShowEveryStepAndAgreeWithTheResult) {
  const Scratch scratch;
  const std::uint16_t port = testbed::free_loopback_port().value();
  Program program(scratch, {"capacity",
                            "local-mutex",
                            "--slo",
                            "acquire.p99<1ns",
                            "--hold",
                            "0s",
                            "--clients",
                            "4",
                            "--duration",
                            "200ms",
                            "--time",
                            "6s",
                            "--warmup",
                            "0ms",
                            "--linger",
                            "600s",
                            "--metrics-listen",
                            std::to_string(port),
                            "--out",
                            "r.json"});
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
  const auto all = static_cast<double>(acquired_in(result.at("capacity").at(0)));
  // A page is served for a while once it is made.
  EXPECT_TRUE(eventually([&] {
    look();
    return acquired > all;  // with those of the closed loop before
  })) << acquired
      << ", but " << all << " in the result";
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().code, 99) << "no rate keeps the objective";
}

TEST(FaultMetrics, AFaultIsActiveWhileItLastsAndAnInterruptHealsAndSaves) {
  const Scratch scratch;
  const std::uint16_t port = testbed::free_loopback_port().value();
  Program program(scratch, {"run", "redis-set-nx-lua", "--fault", "store-freeze@1s+50s",
                            "--duration", "60s", "--ttl", "500ms", "--warmup", "0ms", "--out",
                            "r.json", "--metrics-listen", std::to_string(port)});
  ASSERT_TRUE(program.says("metrics on")) << program.said();
  const auto becomes = [&](double value) {
    return eventually([&] {
      return metric_on(http_get(port, "/metrics").body,
                       R"(lockbench_fault_active{strategy="redis-set-nx-lua",backend="redis",)"
                       R"(fault="store-freeze"})") == value;
    });
  };
  EXPECT_TRUE(becomes(0)) << "there from the start";
  ASSERT_TRUE(becomes(1)) << program.said();
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_TRUE(run_of(result, "redis-set-nx-lua").at("faults").at(0).at("healed_seconds").is_null());
  EXPECT_EQ(outcome.err.find("may be left behind"), std::string::npos)
      << "its server did not answer again: " << outcome.err;
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"r.json"}) << "no server is left";
}

}  // namespace
}  // namespace lockbench::test
