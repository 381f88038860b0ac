#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockbench::test
