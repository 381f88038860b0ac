#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "strategies/registry.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

Setting without_programs() { return {.environment = {{"PATH", "/nonexistent"}}}; }

/// Debian keeps its programs elsewhere, where they are looked for too.
bool is_found_without_path(const std::string& backend) { return backend == "postgres"; }

/// ZooKeeper is Java's to run.
std::string missing_of(const std::string& backend) {
  if (backend == "zookeeper") return "java not found: install the package default-jre-headless";
  const std::string program = backend == "redis" ? "redis-server" : backend;
  return program + " not found: install the package " + program;
}

TEST(List, ShowsEveryStrategyAsText) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"list"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  Words names;
  for (const std::string& line : lines_of(outcome.out)) {
    if (!line.empty() && line.front() != ' ') names.push_back(line);
  }
  EXPECT_EQ(names, all_strategy_names());
}

TEST(List, ShowsEveryStrategyAsJson) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"list", "--format", "json"});
  EXPECT_EQ(outcome.code, 0);
  Words names;
  for (const Json& strategy : Json::parse(outcome.out)) {
    names.push_back(strategy.at("name"));
    EXPECT_TRUE(strategy.at("available")) << strategy;
    EXPECT_TRUE(strategy.at("unavailable_because").is_null());
    EXPECT_FALSE(strategy.at("summary").get<std::string>().empty());
    EXPECT_EQ(strategy.at("acquire").empty(), strategy.at("backend") == "local") << strategy;
    EXPECT_TRUE(strategy.at("traits").at("waiting").is_string());
    EXPECT_FALSE(strategy.at("hazards").empty()) << "everything falls to something";
  }
  EXPECT_EQ(names, all_strategy_names());
}

TEST(List, SaysWhatIsNotAvailableAndWhy) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"list", "--format", "json"}, without_programs());
  EXPECT_EQ(outcome.code, 0);
  for (const Json& strategy : Json::parse(outcome.out)) {
    const auto backend = strategy.at("backend").get<std::string>();
    if (is_found_without_path(backend)) continue;
    EXPECT_EQ(strategy.at("available"), backend == "local") << strategy;
    if (strategy.at("available")) continue;
    expect_in(strategy.at("unavailable_because"), missing_of(backend));
  }
}

TEST(MissingProgram, SkipsWhatNobodyNamed) {
  const Scratch scratch;
  const Outcome outcome =
      lockbench(scratch, {"run", "all", "--duration", "20ms", "--warmup", "0ms", "--out", "r.json"},
                without_programs());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("runs").size() + result.at("skipped").size(), all_strategy_names().size());
  EXPECT_TRUE(kept_exclusion(run_of(result, "local-mutex")));
  for (const Json& skipped : result.at("skipped")) {
    const auto name = skipped.at("strategy").get<std::string>();
    expect_in(skipped.at("reason"), missing_of(std::string(find_strategy(name)->backend)));
    expect_in(outcome.err, "skipped: " + skipped.at("strategy").get<std::string>());
  }
}

TEST(MissingProgram, IsAnErrorForWhatWasNamed) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"run", "all", "redis-set-nx"}, without_programs());
  EXPECT_EQ(outcome.code, 1);
  expect_in(outcome.err, "redis-set-nx cannot run here: redis-server not found");
  EXPECT_EQ(lines_of(outcome.err).size(), 1U);
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Doctor, FindsNothingWrongHere) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"doctor", "--redis", shared_redis().url()});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(outcome.out.find("FAILED"), std::string::npos) << outcome.out;
  expect_in(outcome.out, fmt::format("127.0.0.1:{}, version ", shared_redis().port()));
}

TEST(Doctor, NamesWhatIsMissing) {
  const Scratch scratch;
  const Outcome program = lockbench(scratch, {"doctor"}, without_programs());
  EXPECT_EQ(program.code, 2);
  expect_in(program.out, "FAILED");
  expect_in(program.out, "redis-server not found: install the package redis-server");
  const std::string nowhere = fmt::format("127.0.0.1:{}", closed_port());
  const Outcome endpoint =
      lockbench(scratch, {"doctor", "--redis", "redis://ann:hunter2@" + nowhere});
  EXPECT_EQ(endpoint.code, 2);
  expect_in(endpoint.out, nowhere);
  EXPECT_EQ(endpoint.out.find("hunter2"), std::string::npos);
}

TEST(Version, IsOneLine) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(std::regex_match(
      outcome.out, std::regex(R"(lockbench \d+\.\d+\.\d+ \([0-9a-z-]+, [A-Za-z]+\)\n)")))
      << outcome.out;
}

TEST(Help, GoesBeforeMistakes) {
  const Scratch scratch;
  for (const Words& mistake :
       {Words{"run", "all", "--clients", "many", "--help"}, Words{"run", "--out", "--help"},
        Words{"run", "--help", "--clients"}, Words{"run", "--ttl=", "-h"}}) {
    const Outcome outcome = lockbench(scratch, mistake);
    EXPECT_EQ(outcome.code, 0);
    expect_in(outcome.out, "\n  --clients ");
  }
  EXPECT_TRUE(scratch.files().empty());
}

}  // namespace
}  // namespace lockbench::test
