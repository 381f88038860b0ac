#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <stdexcept>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

using testing::HasSubstr;

const Json& difference(const Json& document, std::string_view figure) {
  for (const Json& one : document.at("differences")) {
    if (one.at("figure") == figure) return one;
  }
  throw std::runtime_error("not compared: " + std::string(figure));
}

/// A configuration of short runs on a private server.
std::string configuration(const Scratch& scratch, const std::string& name,
                          const std::string& more) {
  return scratch.write(name + ".toml",
                       fmt::format("strategies = [\"redis-set-nx-lua\"]\nclients = 1\n"
                                   "warmup = \"20ms\"\nout = \"{}.json\"\n{}",
                                   name, more));
}

TEST(CompareConfigurations, MeasuresBothAsTheFilesSayAndFindsTheSameInTheirResults) {
  const Scratch scratch;
  const std::string a =
      configuration(scratch, "a", "hold = \"1ms\"\niterations = 40\nduration = \"20s\"\n");
  const std::string b = configuration(
      scratch, "b", "hold = \"1ms\"\niterations = 40\nduration = \"20s\"\nrtt = \"5ms\"\n");
  // --force, as a run disturbed by other programs is invalid.
  const Outcome made = lockbench(scratch, {"compare", "--run", a, b, "--repeat", "4", "--force",
                                           "--quiet", "--format", "json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json of_a = read_result(scratch / "a.json");
  const Json of_b = read_result(scratch / "b.json");
  EXPECT_NE(of_a.at("id"), of_b.at("id"));
  EXPECT_EQ(of_b.at("command"), Json::array({"run", "--repeat", "4", "--config", b}));
  for (const Json* result : {&of_a, &of_b}) {
    EXPECT_EQ(result->at("runs").size(), 4U);
    EXPECT_FALSE(result->at("interrupted"));
    for (const Json& run : result->at("runs")) EXPECT_TRUE(kept_exclusion(run));
  }
  EXPECT_GT(run_of(of_a, "redis-set-nx-lua").at("bytes_per_section"), 0) << "counted by the proxy";
  const Json differences = Json::parse(made.out).at("differences");
  EXPECT_GE(difference(Json::parse(made.out), "acquire.p50").at("b").get<double>(), 0.005);
  const Outcome files =
      lockbench(scratch, {"compare", "a.json", "b.json", "--force", "--format", "json"});
  ASSERT_EQ(files.code, 0) << files.err;
  EXPECT_EQ(Json::parse(files.out).at("differences"), differences);
  const Outcome refused = lockbench(scratch, {"compare", "a.json", "b.json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("rtt 0 and 0.005"));
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

TEST(HdrFiles, HaveThePercentilesOfEachRepetition) {
  const Scratch scratch;
  const Outcome run = lockbench(scratch, short_run({"local-mutex", "none", "--repeat", "3", "--hdr",
                                                    "deep/er", "--out", "r.json"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = read_result(scratch / "r.json");
  for (const Json& one : result.at("runs")) {
    const Json& acquire = one.at("acquire");
    // Including waits cut off by the run's end.
    const int samples =
        acquire.at("count").get<int>() + acquire.at("censored").at("count").get<int>();
    expect_in(read_file(scratch / fmt::format("deep/er/{}.{}.acquire.hgrm",
                                              one.at("strategy").get<std::string>(),
                                              one.at("repetition").get<int>())),
              fmt::format("Total count    = {:>12}]", samples));
  }
}

}  // namespace
}  // namespace lockbench::test
