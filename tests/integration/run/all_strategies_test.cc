#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

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

std::vector<std::string> strategies_of(const Json& result) {
  std::vector<std::string> names;
  for (const Json& run : result.at("runs")) names.push_back(run.at("strategy"));
  return names;
}

void expect_that_all_keep_their_promises(const Json& result) {
  EXPECT_EQ(strategies_of(result), all_strategy_names());
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

/// `lockbench show` of the result in each format; the run has printed a table.
void expect_a_row_each_in_every_format(const Scratch& scratch, const Json& result,
                                       const std::string& printed) {
  const auto shown = [&](const char* format) {
    const Outcome outcome = lockbench(scratch, {"show", "deep/in/here.json", "--format", format});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto rows_of = [](const std::string& text, const std::string& start) {
    const std::vector<std::string> lines = lines_of(text);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.starts_with(start); });
  };
  EXPECT_EQ(printed, shown("table"));
  const std::string markdown = shown("markdown");
  for (const std::string& name : all_strategy_names()) {
    EXPECT_EQ(rows_of(printed, name + " "), 1) << name;
    EXPECT_EQ(rows_of(markdown, fmt::format("| {} |", name)), 1) << name;
  }
  EXPECT_EQ(Json::parse(shown("json")), result);
  const auto rows = read_csv(shown("csv"));
  ASSERT_EQ(rows.size(), all_strategy_names().size());
  for (const auto& row : rows) {
    const std::string& strategy = row.at("strategy");
    SCOPED_TRACE(strategy);
    const Json& json = run_of(result, strategy);
    EXPECT_EQ(row.at("sections"), json.at("sections").dump());
    EXPECT_EQ(row.at("overlaps"), json.at("audit").at("overlaps").dump());
    EXPECT_EQ(row.at("lost_updates"), json.at("audit").at("lost_updates").dump());
    EXPECT_EQ(row.at("verdict"), json.at("audit").at("verdict"));
    EXPECT_EQ(row.at("repetition"), "1");
    for (const auto& [outcome, count] : json.at("outcomes").items()) {
      EXPECT_EQ(row.at(outcome), count.dump()) << outcome;
    }
    EXPECT_DOUBLE_EQ(std::stod(row.at("acquire_p99_seconds")),
                     json.at("acquire").at("p99").get<double>());
  }
}

TEST(AllStrategies, RunKeepTheirPromisesAndHaveARowEach) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, run_all);
  const Json result = read_result(scratch / "deep/in/here.json");
  for (const Json& run : result.at("runs")) {
    EXPECT_EQ(run.at("errors"), Json::array()) << run.at("strategy");
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_that_all_keep_their_promises(result);
  expect_a_row_each_in_every_format(scratch, result, outcome.out);
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
