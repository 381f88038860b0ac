#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

/// Long enough in the section, and enough clients, for `none` to lose updates for certain.
std::vector<std::string> run_all(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"all", "--hold", "100us"});
  return short_run(std::move(arguments));
}

std::vector<std::string> strategies_of(const Json& result) {
  std::vector<std::string> names;
  for (const Json& run : result.at("runs")) names.push_back(run.at("strategy"));
  return names;
}

TEST(AllStrategies, RunAndKeepTheirPromises) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, run_all({"--format", "json", "--out", "deep/in/here.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "deep/in/here.json");
  EXPECT_EQ(Json::parse(outcome.out), result);
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
      EXPECT_EQ(audit.at("verdict"), "exclusive");
      EXPECT_EQ(audit.at("lost_updates"), 0);
      EXPECT_EQ(audit.at("overlaps"), 0);
    } else {
      EXPECT_EQ(audit.at("verdict"), "unprotected");
      EXPECT_GT(audit.at("lost_updates"), 0);
    }
  }
}

TEST(AllStrategies, AreWhatRunsWithoutArgumentsAndTheResultIsSavedByItsName) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"--duration", "20ms", "--warmup", "0ms"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> files = scratch.files();
  ASSERT_EQ(files.size(), 1U) << "only the result stays";
  const Json result = read_result(scratch / files.front());
  EXPECT_EQ(files.front(), fmt::format("results/runs/{}.json", result.at("id").get<std::string>()));
  EXPECT_NE(outcome.err.find(files.front()), std::string::npos);
  EXPECT_EQ(strategies_of(result), all_strategy_names());
}

TEST(AllStrategies, HaveARowEachInTheTable) {
  const Scratch scratch;
  const Outcome table = lockbench(scratch, run_all({"--format", "table"}));
  EXPECT_EQ(table.code, 0) << table.err;
  const std::vector<std::string> lines = lines_of(table.out);
  for (const std::string& name : all_strategy_names()) {
    const auto rows = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with(name + " ");
    });
    EXPECT_EQ(rows, 1) << name;
  }
}

TEST(AllStrategies, HaveARowEachInMarkdown) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"run", "--duration", "20ms", "--warmup", "0ms",
                                              "--format", "markdown", "--out", "r.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  for (const std::string& name : all_strategy_names()) {
    const auto rows = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with(fmt::format("| {} |", name));
    });
    EXPECT_EQ(rows, 1) << name;
  }
}

TEST(AllStrategies, HaveARowEachInCsvThatAgreesWithTheFile) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, run_all({"--format", "csv", "--out", "r.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const auto rows = read_csv(outcome.out);
  ASSERT_EQ(rows.size(), all_strategy_names().size());
  for (const auto& row : rows) {
    const std::string& strategy = row.at("strategy");
    SCOPED_TRACE(strategy);
    const Json& run = run_of(result, strategy);
    EXPECT_EQ(row.at("sections"), run.at("sections").dump());
    EXPECT_EQ(row.at("overlaps"), run.at("audit").at("overlaps").dump());
    EXPECT_EQ(row.at("lost_updates"), run.at("audit").at("lost_updates").dump());
    EXPECT_EQ(row.at("verdict"), run.at("audit").at("verdict"));
    EXPECT_EQ(row.at("repetition"), "1");
    for (const auto& [name, count] : run.at("outcomes").items()) {
      EXPECT_EQ(row.at(name), count.dump()) << name;
    }
    EXPECT_DOUBLE_EQ(std::stod(row.at("acquire_p99_seconds")),
                     run.at("acquire").at("p99").get<double>());
  }
}

}  // namespace
}  // namespace lockbench::test
