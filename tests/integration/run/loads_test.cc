#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

/// The runs of a load, the one with the highest rate or round-trip time last.
std::vector<Json> runs_under(const Json& result, std::string_view strategy, std::string_view load) {
  std::vector<Json> runs;
  for (const Json& run : result.at("runs")) {
    if (run.at("strategy") == strategy && run.at("load").at("name") == load) runs.push_back(run);
  }
  return runs;
}

TEST(Overview, MeasuresEachLoadAndReportsThemAll) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"overview", "none", "redis-queue", "redis-set-nx-lua", "--duration",
                          "700ms", "--warmup", "200ms", "--contended-grants", "200", "--out",
                          "r.json", "--report", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").size(), 14U) << "none has no network";
  const std::string page = read_file(scratch / "r.html");
  expect_in(page, "demand: what a client waits");
  expect_in(page, "Next: lockbench hazards");
  expect_in(page, "demand at 350/s");
  expect_in(page, "lockbench overview none redis-queue redis-set-nx-lua --duration 700ms");
}

TEST(Loads, AloneCountsRoundTripsAndBytes) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"run", "redis-set-nx-lua", "--load", "alone",
                                              "--iterations", "100", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const std::vector<Json> runs = runs_under(result, "redis-set-nx-lua", "alone");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].at("load").at("rtt_seconds"), 0);
  EXPECT_TRUE(runs[0].at("bytes_per_section").is_null());
  EXPECT_GE(runs[1].at("acquire").at("p50"), 0.001);
  // A lock and a script, with their answers.
  EXPECT_GT(runs[1].at("bytes_per_section"), 150);
  EXPECT_LT(runs[1].at("bytes_per_section"), 1000);
  EXPECT_EQ(runs[1].at("audit").at("verdict"), "untested") << "nobody competed";
  EXPECT_TRUE(result.at("workload").at("clients").is_null()) << "each run says it";
  EXPECT_EQ(result.at("command"),
            Json::array({"run", "redis-set-nx-lua", "--load", "alone", "--iterations", "100"}));
  expect_in(outcome.out, "round");
}

TEST(Rtt, IsAddedToEveryRoundTripOfTheLockAndTheCounterHasItsOwnServer) {
  constexpr double kRtt = 0.010;
  const Scratch scratch;
  const Outcome outcome = lockbench(
      scratch, {"run", "redis-set-nx", "--rtt", "10ms", "--keys", "per-client", "--clients", "4",
                "--iterations", "40", "--warmup", "0ms", "--resource", "redis", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx");
  for (const char* part : {"acquire", "release"}) {
    EXPECT_GE(run.at(part).at("min"), kRtt * 0.99) << part << ", but for the histogram's error";
  }
  EXPECT_EQ(run.at("sections"), 40);
  EXPECT_EQ(run.at("audit").at("counter"), 40);
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_EQ(result.at("workload").at("rtt"), kRtt);
  const Json& servers = result.at("environment").at("servers");
  EXPECT_NE(servers.at("redis").at("endpoints"), servers.at("counter").at("endpoints"));
}

TEST(ManyClients, RunInOneProcessThatRaisesItsOpenFiles) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch,
                {"run", "redis-set-nx-lua", "--clients", "2000", "--keys", "per-client",
                 "--resource", "redis", "--iterations", "4000", "--out", "r.json"},
                {.open_files = 256});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& run = run_of(result, "redis-set-nx-lua");
  EXPECT_EQ(run.at("fairness").at("per_client").size(), 2000U);
  EXPECT_EQ(run.at("errors"), Json::array());
  EXPECT_EQ(run.at("outcomes").at("failed"), 0);
  EXPECT_EQ(run.at("outcomes").at("unknown"), 0);
  EXPECT_GE(run.at("audit").at("increments"), 4000);
  EXPECT_TRUE(kept_exclusion(run));
}

// What a run says of the CPU of servers and machine.

TEST(Resources, TheCpuOfPrivateServersIsKnown) {
  std::vector<std::string> names;
  for (const char* name :
       {"redis-queue", "memcached-add", "etcd", "zookeeper", "postgres-advisory"}) {
    if (find_strategy(name) != nullptr) names.emplace_back(name);
  }
  std::vector<std::string> arguments =
      words("run --clients 4 --warmup 100ms --duration 600ms --hold 0ms --out r.json");
  arguments.insert(arguments.end(), names.begin(), names.end());
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

TEST(Choose, MeasuresWhatQualifiesUnderTheLoadThatWasAskedFor) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"choose", "--stores", "redis,postgres", "--fair", "--clients", "8",
                          "--keys", "2", "--rate", "200", "--work-time-p50", "1ms", "--measure",
                          "--measure-time", "12s", "--format", "json", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_TRUE(answer.at("ranked_by").at("measured_in").get<std::string>().starts_with("r.json"));
  EXPECT_TRUE(answer.at("ranked_by").at("differences").empty());
  const Json result = read_result(scratch / "r.json");
  for (const Json& one : answer.at("qualify")) {
    const std::string name = one.at("strategy");
    const Json& run = run_of(result, name);
    EXPECT_EQ(run.at("load").at("clients"), 8) << name;
    EXPECT_EQ(run.at("load").at("rate"), 200) << name;
  }
  EXPECT_GE(answer.at("qualify").size(), 2U);
}

}  // namespace
}  // namespace lockbench::test
