#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

/// Four short runs of a lock without a server, whose work takes so long.
void record(const Scratch& scratch, const std::string& file, const std::string& hold) {
  const Outcome run =
      lockbench(scratch, {"run", "local-mutex", "--clients", "1", "--hold", hold, "--repeat", "4",
                          "--duration", "250ms", "--warmup", "20ms", "--quiet", "--out", file});
  ASSERT_EQ(run.code, 0) << run.err;
}

const Json& difference(const Json& document, std::string_view figure) {
  for (const Json& one : document.at("differences")) {
    if (one.at("figure") == figure) return one;
  }
  throw std::runtime_error("not compared: " + std::string(figure));
}

TEST(CompareRuns, ALongerSectionIsFoundAndFails) {
  const Scratch scratch;
  record(scratch, "a.json", "1ms");
  record(scratch, "b.json", "20ms");
  const Outcome refused = lockbench(scratch, {"compare", "a.json", "b.json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("hold 0.001 and 0.02"));

  const Outcome slower = lockbench(scratch, {"compare", "a.json", "b.json", "--force", "--format",
                                             "json", "--fail-on", "sections_per_second<-50%"});
  EXPECT_EQ(slower.code, 99) << slower.err;
  EXPECT_THAT(slower.err, HasSubstr("sections_per_second<-50%: local-mutex is worse"));
  const Json document = Json::parse(slower.out);
  const Json& rate = difference(document, "sections_per_second");
  EXPECT_EQ(rate.at("finding"), "worse");
  EXPECT_LT(rate.at("high").get<double>(), 0);

  const Outcome faster = lockbench(scratch, {"compare", "b.json", "a.json", "--force", "--format",
                                             "json", "--fail-on", "sections_per_second<-50%"});
  EXPECT_EQ(faster.code, 0) << faster.err;
  EXPECT_EQ(difference(Json::parse(faster.out), "sections_per_second").at("finding"), "better");
}

TEST(CompareRuns, ARunDoesNotDifferFromItself) {
  const Scratch scratch;
  record(scratch, "a.json", "1ms");
  const Outcome same = lockbench(scratch, {"compare", "a.json", "a.json", "--format", "json"});
  EXPECT_EQ(same.code, 0) << same.err;
  for (const Json& one : Json::parse(same.out).at("differences")) {
    EXPECT_EQ(one.at("change"), 0);
    EXPECT_EQ(one.at("finding"), "no difference that can be shown");
  }
}

/// A configuration of short runs on a private server.
std::string configuration(const Scratch& scratch, const std::string& name,
                          const std::string& more) {
  return scratch.write(name + ".toml",
                       fmt::format("strategies = [\"redis-set-nx-lua\"]\nclients = 1\n"
                                   "warmup = \"20ms\"\nout = \"{}.json\"\n{}",
                                   name, more));
}

TEST(CompareConfigurations, MeasuresBothAndFindsWhatDiffers) {
  const Scratch scratch;
  const std::string a = configuration(scratch, "a", "hold = \"1ms\"\nduration = \"200ms\"\n");
  const std::string b = configuration(scratch, "b", "hold = \"5ms\"\nduration = \"200ms\"\n");
  // A run in which other programs had the machine is invalid.
  const Outcome made =
      lockbench(scratch, {"compare", "--run", a, b, "--repeat", "4", "--force", "--quiet",
                          "--format", "json", "--fail-on", "hold.p50>+100%"});
  EXPECT_EQ(made.code, 99) << made.err;
  EXPECT_THAT(made.err, HasSubstr("hold.p50>+100%: redis-set-nx-lua is worse"));
  const Json of_a = read_result(scratch / "a.json");
  const Json of_b = read_result(scratch / "b.json");
  EXPECT_NE(of_a.at("id"), of_b.at("id"));
  for (const Json* result : {&of_a, &of_b}) {
    EXPECT_EQ(result->at("runs").size(), 4U);
    EXPECT_FALSE(result->at("interrupted"));
    for (const Json& run : result->at("runs")) EXPECT_TRUE(kept_exclusion(run));
  }
  const Outcome files = lockbench(scratch, {"compare", "a.json", "b.json", "--force", "--format",
                                            "json", "--fail-on", "hold.p50>+100%"});
  EXPECT_EQ(files.code, 99) << files.err;
  EXPECT_EQ(Json::parse(files.out).at("differences"), Json::parse(made.out).at("differences"));
}

TEST(CompareConfigurations, OnlyTheDelayOfANetworkDiffers) {
  const Scratch scratch;
  const std::string a = configuration(scratch, "a", "duration = \"200ms\"\n");
  const std::string b = configuration(scratch, "b", "duration = \"200ms\"\nrtt = \"5ms\"\n");
  const Outcome made = lockbench(
      scratch, {"compare", "--run", a, b, "--repeat", "4", "--quiet", "--format", "json"});
  EXPECT_EQ(made.code, 0) << made.err;
  const Json document = Json::parse(made.out);
  const Json& acquire = difference(document, "acquire.p50");
  EXPECT_EQ(acquire.at("finding"), "worse");
  EXPECT_GE(acquire.at("b").get<double>(), 0.005);
  EXPECT_LT(acquire.at("a").get<double>(), 0.005);
  const Json of_a = read_result(scratch / "a.json");
  EXPECT_GT(run_of(of_a, "redis-set-nx-lua").at("bytes_per_section"), 0) << "counted by the proxy";
  EXPECT_THAT(lockbench(scratch, {"compare", "a.json", "b.json"}).err,
              HasSubstr("rtt 0 and 0.005"));
}

TEST(CompareConfigurations, AnInterruptSavesWhatThereIsOfBoth) {
  const Scratch scratch;
  const std::string a = configuration(scratch, "a", "duration = \"200ms\"\n");
  const std::string b = configuration(scratch, "b", "duration = \"60s\"\n");
  Program program(scratch, {"compare", "--run", a, b});
  ASSERT_TRUE(program.says("(2/20) measuring"));
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 105) << outcome.err;
  for (const char* file : {"a.json", "b.json"}) {
    const Json result = read_result(scratch / file);
    EXPECT_TRUE(result.at("interrupted")) << file;
    EXPECT_EQ(result.at("runs").size(), 1U) << file;
    EXPECT_THAT(outcome.err, HasSubstr(file));
  }
}

TEST(CompareConfigurations, AServerThatCannotBeReachedIsNamedWithItsFile) {
  const Scratch scratch;
  const std::string a = configuration(scratch, "a", "duration = \"200ms\"\n");
  const std::string b =
      configuration(scratch, "b", "duration = \"200ms\"\nredis = \"redis://127.0.0.1:1\"\n");
  const Outcome refused = lockbench(scratch, {"compare", "--run", a, b, "--quiet"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(b + ": --redis: "));
}

TEST(HdrFiles, EachRepetitionIsAnInterval) {
  const Scratch scratch;
  const Outcome run =
      lockbench(scratch, short_run({"local-mutex", "none", "--repeat", "3", "--hdr", "h"}));
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* strategy : {"local-mutex", "none"}) {
    const std::string log = read_file(scratch / ("h/" + std::string(strategy) + ".hlog"));
    int intervals = 0;
    for (const std::string& line : lines_of(log)) intervals += line.starts_with("Tag=acquire,");
    EXPECT_EQ(intervals, 3) << strategy;
    for (const char* repetition : {"1", "2", "3"}) {
      EXPECT_THAT(read_file(scratch / fmt::format("h/{}.{}.acquire.hgrm", strategy, repetition)),
                  HasSubstr("1/(1-Percentile)"));
    }
  }
}

}  // namespace
}  // namespace lockbench::test
