#include <gtest/gtest.h>

#include <csignal>

#include "testbed/servers/ports.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/http_client.h"

namespace lockbench::test {
namespace {

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
