#include <nlohmann/json.hpp>

#include "results/file/json.h"
#include "tests/support/variable.h"
#include "tests/unit/choose/fixtures.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Ran choose(std::vector<std::string> args) {
  args.insert(args.begin(), "choose");
  return ran(args);
}

void expect_refused(const std::vector<std::string>& args,
                    const testing::Matcher<const std::string&>& message) {
  cli::expect_refused(choose(args), message);
}

TEST(ChooseCommand, MistakesAreOneLine) {
  expect_refused({"--stores", "rdis"}, HasSubstr("\"rdis\" is not one of"));
  expect_refused({"--stores", "redis,"}, HasSubstr("\"\" is not one of"));
  expect_refused({"--survive", "crsh"},
                 HasSubstr("\"crsh\" is not a known fault: did you mean crash"));
  expect_refused({"--survive", "the end of the world"}, HasSubstr("crash, host-crash, pause"));
  expect_refused({"--work-time-p99", "800"}, HasSubstr("800"));
  expect_refused({"--rate", "350", "--slo", "sections_per_second>400"},
                 HasSubstr("demands more than --rate offers: at most 350"));
  expect_refused({"--work-time-p99", "0s"}, HasSubstr("too short: 1us to 720h"));
  expect_refused({"--work-time-p50", "2s", "--work-time-p99", "1s"},
                 HasSubstr("must not be longer"));
  expect_refused({"--clients", "0"}, HasSubstr("1 to 100000"));
  expect_refused({"--fencing-resource", "maybe"}, HasSubstr("is not one of yes, no"));
  for (const char* figure : {"acquire.p9", "acquire.count", "wait.backoff_seconds"}) {
    expect_refused({"--fair", "--rank-by", figure},
                   AllOf(HasSubstr(figure), HasSubstr("better high or better low")));
  }
  expect_refused({"--waive", "crash", "--survive", "crash"},
                 HasSubstr("contradicts --survive crash"));
  expect_refused({"--slo", "acquire.p99<0s"}, HasSubstr("can never be kept"));
  expect_refused({"--key-skew", "1"}, HasSubstr("--key-skew requires --keys"));
  expect_refused({"--today", "redison"}, HasSubstr("neither a strategy nor the name of a library"));
  expect_refused({"--language", "cobol"}, HasSubstr("is not one of java, go, python, javascript"));
  expect_refused({"--for", "leader", "--measure"}, HasSubstr("--measure requires --for mutex"));
  expect_refused({"--fair", "--format", "csv"}, HasSubstr("table, json"));
  expect_refused({"--fair", "/nowhere.json"}, HasSubstr("/nowhere.json: cannot be read"));
  const TemporaryFile empty("choose-empty.json", to_json(results::minimal_result()));
  expect_refused({"--fair", empty.path()}, HasSubstr("no runs or plays"));
}

// In a separate process, as it blocks signals for good. The measurement ignores servers from the
// environment that only `run` uses.
TEST(ChooseCommand, TimeThatDoesNotSufficeForARunOfEachIsRefused) {
  const test::Variable counter("LOCKBENCH_COUNTER_REDIS", "redis://127.0.0.1:1");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::vector<std::string> args{
      "choose",    "--clients",      "8",  "--work-time-p50", "1ms",
      "--measure", "--measure-time", "5s", "--out",           "/dev/null"};
  EXPECT_EXIT(std::_Exit(dispatch(args)), testing::ExitedWithCode(1),
              "measure-time: [0-9]+ strategies need .* for one run of each");
}

TEST(ChooseCommand, ExitsWith99WhereNothingQualifies) {
  const Ran ran = choose({"--stores", "memcached", "--fair"});
  EXPECT_EQ(ran.code, 99);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("qualifies\n"), HasSubstr("without --fair: memcached")));
}

TEST(ChooseCommand, ExitsWith99WhereNoLockKeepsTheRate) {
  const Ran ran = choose({"--stores", "redis", "--rate", "600", "--work-time-p50", "2ms"});
  EXPECT_EQ(ran.code, 99);
  EXPECT_THAT(ran.out, StartsWith("No lock keeps 600/s on 1 key: it would be taken 120 %"));
}

TEST(ChooseCommand, DoesNotMeasureWhatNoLockCanCarryAndSaysSo) {
  const Ran ran =
      choose({"--stores", "redis", "--rate", "600", "--work-time-p50", "2ms", "--measure"});
  EXPECT_EQ(ran.code, 99);
  EXPECT_THAT(ran.err, HasSubstr("not measured: no lock can carry this load"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("--measure")));
}

TEST(ChooseCommand, AnHourlyJobIsARateAsWell) {
  const Ran ran = choose({"--stores", "postgres", "--work-time-p50", "1h", "--rate", "0.000278"});
  EXPECT_EQ(ran.code, 99);
  EXPECT_THAT(ran.out, HasSubstr("0.000278/s of 1 h"));
}

TEST(ChooseCommand, TodayMayBeALibrary) {
  for (const auto& [name, strategy] :
       {std::pair("redisson", "redis-reentrant-notify"), std::pair("Curator", "zookeeper"),
        std::pair("redlock", "redlock"), std::pair("shedlock", "postgres-lease")}) {
    const Ran ran = choose({"--today", name, "--format", "json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out).at("requirements").at("today"), strategy);
  }
}

TEST(ChooseCommand, AServerThatCannotBeAskedIsSaid) {
  const Ran ran = choose({"--stores", "redis", "--redis", "redis://127.0.0.1:1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("--redis: its conditions are not checked"));
}

TEST(ChooseCommand, SimulatesALoadThatIsFarFromAllThatWereMeasured) {
  const auto first = [](const char* rtt) {
    const Ran ran =
        choose({"--stores", "memcached", "--clients", "1", "--rtt", rtt, "--format", "json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("qualify").at(0);
  };
  const auto far = first("20ms");
  EXPECT_GT(far.at("simulated").at("value"), 0.020);
  EXPECT_LT(far.at("value"), 0.010) << "measured with a round trip of 1 ms";
  EXPECT_EQ(first("1ms").at("simulated"), nullptr);
}

TEST(ChooseCommand, JudgesByTheFilesGiven) {
  results::Result result = results::minimal_result();
  result.runs = {choose::measured("redis-fenced", 0.125, 0.125)};
  const TemporaryFile file("choose-mine.json", to_json(result));
  const Ran ran = choose({"--stores", "redis", "--clients", "1", "--format", "json", file.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto document = nlohmann::json::parse(ran.out);
  EXPECT_THAT(document.at("ranked_by").at("measured_in").get<std::string>(),
              StartsWith(file.path()));
  EXPECT_EQ(document.at("qualify").at(0).at("strategy"), "redis-fenced");
  EXPECT_EQ(document.at("qualify").at(0).at("value"), 0.125);
}

}  // namespace
}  // namespace lockbench::cli
