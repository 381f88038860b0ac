#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "testbed/servers/ports.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/http_client.h"

namespace lockbench::test {
namespace {

/// A run that is watched while its server stands still.
class FaultMetrics : public testing::Test {
 protected:
  std::vector<std::string> arguments(const std::string& fault, const std::string& duration) const {
    return {"run",
            "redis-set-nx-lua",
            "--fault",
            fault,
            "--duration",
            duration,
            "--ttl",
            "500ms",
            "--warmup",
            "0ms",
            "--out",
            "r.json",
            "--metrics-listen",
            std::to_string(port_)};
  }
  /// The value of lockbench_fault_active; -1 while there is no answer.
  double active(const std::string& fault) const {
    return metric_on(http_get(port_, "/metrics").body,
                     fmt::format("lockbench_fault_active{{strategy=\"redis-set-nx-lua\","
                                 "backend=\"redis\",fault=\"{}\"}}",
                                 fault));
  }
  bool becomes(const std::string& fault, double value) const {
    return eventually([&] { return active(fault) == value; });
  }

  Scratch scratch_;
  const std::uint16_t port_ = testbed::free_loopback_port().value();
};

TEST_F(FaultMetrics, AFaultIsActiveWhileItLasts) {
  Program program(scratch_, arguments("store-freeze@1s+3s", "60s"));
  ASSERT_TRUE(program.says("metrics on")) << program.said();
  EXPECT_TRUE(becomes("store-freeze", 0)) << "there from the start";
  EXPECT_TRUE(becomes("store-freeze", 1));
  EXPECT_EQ(active("store-kill"), 0) << "no other one";
  EXPECT_TRUE(becomes("store-freeze", 0));
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().code, 105);
  const Json result = read_result(scratch_ / "r.json");
  const Json& mark = run_of(result, "redis-set-nx-lua").at("faults").at(0);
  EXPECT_GE(mark.at("healed_seconds").get<double>() - mark.at("at_seconds").get<double>(), 2.9);
}

TEST_F(FaultMetrics, AnInterruptInMidFaultHealsAndSaves) {
  Program program(scratch_, arguments("store-freeze@100ms+50s", "60s"));
  ASSERT_TRUE(program.says("metrics on")) << program.said();
  ASSERT_TRUE(becomes("store-freeze", 1)) << program.said();
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  const Json result = read_result(scratch_ / "r.json");
  const Json& mark = run_of(result, "redis-set-nx-lua").at("faults").at(0);
  EXPECT_TRUE(mark.at("healed_seconds").is_null());
  EXPECT_EQ(outcome.err.find("may be left behind"), std::string::npos)
      << "its server did not answer again: " << outcome.err;
  EXPECT_EQ(scratch_.files(), std::vector<std::string>{"r.json"}) << "no server is left";
}

}  // namespace
}  // namespace lockbench::test
