#include <fmt/format.h>
#include <gtest/gtest.h>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

/// Long enough in the section, and enough clients, for `none` to lose updates for certain. Ends
/// soon, but a disk that stalls may take its time.
const std::vector<std::string> run_all{
    "run", "all",        "--hold", "100us",          "--warmup", "50ms",  "--iterations",
    "40",  "--duration", "20s",    "--node-timeout", "5s",       "--out", "deep/in/here.json"};

void expect_that_all_keep_their_promises(const Json& result) {
  EXPECT_EQ(result.at("runs").size(), all_strategies().size());
  EXPECT_TRUE(result.at("skipped").empty());
  EXPECT_FALSE(result.at("interrupted"));
  for (const Descriptor* strategy : all_strategies()) {
    const Json& run = run_of(result, strategy->name);
    SCOPED_TRACE(strategy->name);
    const Json& audit = run.at("audit");
    EXPECT_GT(run.at("sections"), 0);
    EXPECT_EQ(run.at("sections"), run.at("outcomes").at("acquired"));
    // The audit spans the warm-up too.
    EXPECT_GE(audit.at("increments"), run.at("sections"));
    if (strategy->traits.promises_exclusion) {
      EXPECT_TRUE(kept_exclusion(run));
    } else {
      EXPECT_EQ(audit.at("verdict"), "unprotected");
      EXPECT_GT(audit.at("lost_updates"), 0);
    }
  }
}

TEST(AllStrategies, RunKeepTheirPromisesAndAreShown) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, run_all);
  const Json result = read_result(scratch / "deep/in/here.json");
  for (const Json& run : result.at("runs")) {
    EXPECT_EQ(run.at("errors"), Json::array()) << run.at("strategy");
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_that_all_keep_their_promises(result);
  const auto shown = [&](const char* format) {
    return lockbench(scratch, {"show", "deep/in/here.json", "--format", format}).out;
  };
  EXPECT_EQ(shown("table"), outcome.out);
  EXPECT_EQ(Json::parse(shown("json")), result);
}

TEST(Overview, IsWhatRunsWithoutACommandAndTheResultIsSavedByItsName) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"--duration", "200ms", "--warmup", "0ms", "none", "local-mutex"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> files = scratch.files();
  ASSERT_EQ(files.size(), 1U) << "only the result stays";
  const Json result = read_result(scratch / files.front());
  EXPECT_EQ(files.front(), fmt::format("results/runs/{}.json", result.at("id").get<std::string>()));
  EXPECT_NE(outcome.err.find(files.front()), std::string::npos);
  EXPECT_EQ(run_of(result, "none").at("load").at("name"), "alone");
  expect_in(outcome.out, "saturated: ");
}

}  // namespace
}  // namespace lockbench::test
