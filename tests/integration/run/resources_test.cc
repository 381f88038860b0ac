// What a run says of the CPU of servers and machine.

#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

TEST(Resources, TheCpuOfPrivateServersIsKnown) {
  std::vector<std::string> arguments = {"run"};
  std::vector<std::string> names;
  for (const char* name :
       {"redis-queue", "memcached-add", "etcd", "zookeeper", "postgres-advisory"}) {
    if (find_strategy(name) != nullptr) names.emplace_back(name);
  }
  arguments.insert(arguments.end(), names.begin(), names.end());
  for (const char* word : {"--clients", "4", "--warmup", "100ms", "--duration", "600ms", "--hold",
                           "0ms", "--out", "r.json"}) {
    arguments.emplace_back(word);
  }
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Json& run = run_of(result, name);
    ASSERT_TRUE(run.at("server_cpu_seconds_per_section").is_number());
    EXPECT_GT(run.at("server_cpu_seconds_per_section"), 0);
    const Json& generator = run.at("generator");
    EXPECT_GT(generator.at("machine_cpu_share"), 0);
    EXPECT_TRUE(generator.at("other_cpu_share").is_number());
    EXPECT_TRUE(generator.at("steal_share").is_number());
    // Java is warmed until it is steady.
    const double warmup = run.at("warmup_seconds");
    if (name == "zookeeper") {
      EXPECT_GE(warmup, 1);
    } else {
      EXPECT_NEAR(warmup, 0.1, 1e-6);
    }
  }
}

}  // namespace
}  // namespace lockbench::test
