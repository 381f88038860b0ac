#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

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

/// What follows from the file, by strategy.
struct Derived {
  std::set<std::string> safe, broken;
  std::map<double, std::string> by_cost, by_longest_wait;
};

Derived derive(const Json& result) {
  Derived derived;
  std::set<std::string> tested;
  for (const Json& run : result.at("runs")) {
    const std::string name = run.at("strategy");
    const std::string verdict = run.at("audit").at("verdict");
    if (verdict == "exclusive" && run.at("backend") != "local") tested.insert(name);
    if (verdict == "violated" || verdict == "unprotected") derived.broken.insert(name);
  }
  std::set_difference(tested.begin(), tested.end(), derived.broken.begin(), derived.broken.end(),
                      std::inserter(derived.safe, derived.safe.end()));
  for (const std::string& name : derived.safe) {
    const Json far = runs_under(result, name, "alone").back();
    derived.by_cost[far.at("acquire").at("p50").get<double>() +
                    far.at("release").at("p50").get<double>()] = name;
    const Json fairness = runs_under(result, name, "saturated").front().at("fairness");
    derived.by_longest_wait[fairness.at("longest_wait_seconds")] = name;
  }
  return derived;
}

std::string sentence(const std::string& out, std::string_view beginning) {
  for (const std::string& line : lines_of(out)) {
    if (line.starts_with(beginning)) return line;
  }
  return fmt::format("no sentence begins with {}", beginning);
}

TEST(Overview, ItsSentencesFollowFromItsFile) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"overview", "none", "redis-queue", "redis-set-nx-lua", "--duration",
                          "700ms", "--warmup", "200ms", "--contended-grants", "200", "--out",
                          "r.json", "--report", "r.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("runs").size(), 14U) << "none has no network";

  const Derived derived = derive(result);
  ASSERT_FALSE(derived.safe.empty());
  const std::string safe = sentence(outcome.out, "Safe under contention ");
  for (const std::string& name : derived.safe) expect_in(safe, name);
  EXPECT_FALSE(has(safe, "none"));
  const std::string avoid = sentence(outcome.out, "Avoid ");
  for (const std::string& name : derived.broken) expect_in(avoid, name);
  const std::string cheapest = sentence(outcome.out, "Cheapest over a network");
  expect_in(cheapest.substr(0, cheapest.find(';')), derived.by_cost.begin()->second);
  const std::string fairest = sentence(outcome.out, "Fairest");
  expect_in(fairest.substr(0, fairest.find(';')), derived.by_longest_wait.begin()->second);
  expect_in(sentence(outcome.out, "Next:"), derived.by_longest_wait.begin()->second);

  const std::string page = read_file(scratch / "r.html");
  expect_in(page, "all loads");
  expect_in(page, "demand at 350/s");
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
  expect_in(outcome.out, "round");
}

}  // namespace
}  // namespace lockbench::test
