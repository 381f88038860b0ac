#include <nlohmann/json.hpp>

#include "results/file/json.h"
#include "tests/support/simulated_results.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using test::simulated_result;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Ran compare(std::vector<std::string> args) {
  args.insert(args.begin(), "compare");
  return ran(args);
}

Ran gated(const TemporaryFile& a, const TemporaryFile& b, const std::string& gate,
          std::vector<std::string> more = {}) {
  more.insert(more.begin(), {a.path(), b.path(), "--fail-on", gate});
  return compare(more);
}

/// Two similar results, the second slower by half.
class Compare : public testing::Test {
 protected:
  const results::Result fast_ = simulated_result({}, 1);
  const results::Result slow_ = simulated_result({.slowdown = 0.5}, 2);
  const TemporaryFile a_{"a.json", to_json(fast_)};
  const TemporaryFile b_{"b.json", to_json(slow_)};
};

TEST_F(Compare, ShowsEveryFigureWithItsUnit) {
  const Ran ran = compare({a_.path(), b_.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, AllOf(HasSubstr("strategy-0"), HasSubstr("acquire.p50"),
                             testing::ContainsRegex(" (µ|u)s"), HasSubstr("95 % interval"),
                             HasSubstr(" worse\n"), HasSubstr("too few repetitions to tell")));
  EXPECT_THAT(compare({a_.path(), a_.path()}).out, HasSubstr("no difference that can be shown"));
  EXPECT_THAT(compare({b_.path(), a_.path()}).out, HasSubstr(" better\n"));
}

TEST_F(Compare, EveryFormatHasTheSameFindings) {
  const auto rows = [&](const char* format) {
    const std::string out = compare({a_.path(), b_.path(), "--format", format}).out;
    return std::pair(out, std::count(out.begin(), out.end(), '\n'));
  };
  const auto document = nlohmann::json::parse(rows("json").first);
  const auto& differences = document.at("differences");
  const auto count = static_cast<std::ptrdiff_t>(differences.size());
  EXPECT_GT(count, 20);
  EXPECT_EQ(rows("csv").second, count + 1);
  EXPECT_EQ(rows("markdown").second, count + 2);
  EXPECT_EQ(rows("table").second, count + 1);
  EXPECT_THAT(rows("csv").first, HasSubstr("strategy,figure,a,b,relative,change,low,high,p,"));
  const auto& first = differences.at(0);
  EXPECT_EQ(first.at("figure"), "sections_per_second");
  EXPECT_EQ(first.at("finding"), "worse");
  EXPECT_LT(first.at("low"), first.at("change"));
}

TEST_F(Compare, FailsOnARegressionBeyondTheBound) {
  const Ran missed = gated(a_, b_, "acquire.p50>+10%", {"--fail-on", "sections_per_second<-99%"});
  EXPECT_EQ(missed.code, 99);
  EXPECT_THAT(missed.err, AllOf(HasSubstr("acquire.p50>+10%: strategy-0 is worse: 7"),
                                Not(HasSubstr("sections_per_second"))));
  EXPECT_NE(missed.out, "") << "the comparison is shown all the same";
  EXPECT_EQ(gated(a_, b_, "acquire.p50>+500%").code, 0);
  EXPECT_EQ(gated(b_, a_, "acquire.p50>+10%").code, 0);
  EXPECT_EQ(gated(a_, b_, "acquire.max>+5%").code, 99) << "beyond the usual figures";
  EXPECT_EQ(gated(a_, a_, "acquire.p50>+0%").code, 0);
}

TEST_F(Compare, ShowsItsGatesAsTestCases) {
  const Ran ran = gated(a_, b_, "acquire.p50>+10%",
                        {"--fail-on", "sections_per_second<-99%", "--fail-on",
                         "audit.lost_updates>+0", "--format", "junit"});
  EXPECT_EQ(ran.code, 99);
  EXPECT_THAT(ran.out, AllOf(testing::ContainsRegex("tests=.9. failures=.[1-3]. errors=.0."),
                             HasSubstr("<testcase classname=\"strategy-0\" "
                                       "name=\"acquire.p50&#62;+10%\"><failure message="),
                             HasSubstr("name=\"sections_per_second&#60;-99%\"/>"),
                             HasSubstr("name=\"audit.lost_updates&#62;+0\"/>")))
      << "also of what never happened";
  expect_refused(compare({a_.path(), b_.path(), "--format", "junit"}),
                 HasSubstr("--format junit requires --fail-on"));
}

TEST_F(Compare, AGateThatCannotBeExcludedFailsIfStrict) {
  const TemporaryFile again("q.json", to_json(simulated_result({}, 3)));
  const Ran ran = gated(a_, again, "acquire.p99>+0%");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, testing::ContainsRegex("acquire.p99>.0%: cannot be excluded for strategy-.:"
                                              ".*with a power of 80 %\n"));
  EXPECT_EQ(gated(a_, again, "acquire.p99>+0%", {"--strict-gate"}).code, 99);
  EXPECT_EQ(gated(a_, again, "acquire.p99>+500%", {"--strict-gate"}).code, 0);
  const auto gates =
      nlohmann::json::parse(gated(a_, again, "acquire.p99>+0%", {"--format", "json"}).out)
          .at("gates");
  ASSERT_EQ(gates.size(), 3U);
  EXPECT_GT(gates.at(0).at("detectable"), 0);
}

TEST_F(Compare, ItNeedsRepetitionsAndAGateSoundResults) {
  const TemporaryFile single("r.json", to_json(simulated_result({.repetitions = 1}, 1)));
  expect_refused(compare({single.path(), single.path()}),
                 HasSubstr("4 repetitions of each are needed to tell a difference from chance"));
  results::Result doubtful = fast_;
  doubtful.interrupted = true;
  doubtful.runs[0].generator.valid = false;
  const TemporaryFile stopped("s.json", to_json(doubtful));
  const std::string gate = "acquire.p99>+10%";
  expect_refused(gated(a_, stopped, gate),
                 AllOf(HasSubstr("B was interrupted"), HasSubstr("--force")));
  EXPECT_EQ(gated(a_, stopped, gate, {"--force"}).code, 0);
  EXPECT_THAT(compare({a_.path(), stopped.path()}).out,
              AllOf(HasSubstr("B was interrupted"),
                    HasSubstr("1 of 15 runs of B is invalid, and left out")));
}

TEST_F(Compare, AGateIsNotDecidedByInvalidRuns) {
  results::Result disturbed = fast_;
  for (results::Run& run : disturbed.runs) {
    if (run.strategy == disturbed.runs.front().strategy) run.generator.valid = false;
  }
  const TemporaryFile busy("s.json", to_json(disturbed));
  const auto gate = gated(a_, busy, "acquire.p99>+1000%");
  EXPECT_EQ(gate.code, 5);
  EXPECT_THAT(gate.err, HasSubstr("not decided for " + disturbed.runs.front().strategy +
                                  ": no run is valid"));
  EXPECT_EQ(gated(a_, busy, "acquire.p99>+1000%", {"--force"}).code, 0);
}

/// The same result, but this strategy grants nothing.
results::Result without_grants(results::Result result, const std::string& strategy) {
  for (results::Run& run : result.runs) {
    if (run.strategy == strategy) run.acquire = {};
  }
  return result;
}

TEST_F(Compare, AFigureThatVanishedFails) {
  const TemporaryFile dead("l.json", to_json(without_grants(fast_, "strategy-1")));
  const Ran gone = gated(a_, dead, "acquire.p99>+10%");
  EXPECT_EQ(gone.code, 99);
  EXPECT_EQ(gone.err, "acquire.p99>+10%: acquire.p99 of strategy-1 was not measured in B\n");
  EXPECT_THAT(gone.out, testing::ContainsRegex("acquire.p99 .* (–|-) .*not measured in B\n"));
  EXPECT_EQ(gated(a_, dead, "hold.p50>+10%").code, 0);
  const Ran csv = compare({a_.path(), dead.path(), "--format", "csv"});
  EXPECT_THAT(csv.out, testing::ContainsRegex("acquire.p99,[0-9.e-]+,,true,,,,,not measured in B"));

  const Ran back = gated(dead, a_, "acquire.p99>+10%");
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("not measured in A\n"));
  EXPECT_EQ(back.err, "acquire.p99>+10%: cannot be excluded for strategy-1: not measured in A\n");
  EXPECT_EQ(gated(dead, a_, "acquire.p99>+10%", {"--strict-gate"}).code, 99);
}

TEST_F(Compare, AStrategyThatVanishedFails) {
  const TemporaryFile fewer("m.json", to_json(simulated_result({.strategies = 2}, 1)));
  const Ran gone = gated(a_, fewer, "sections_per_second<-5%");
  EXPECT_EQ(gone.code, 99);
  EXPECT_THAT(gone.err, HasSubstr("sections_per_second of strategy-2 was not measured in B\n"));
  EXPECT_EQ(gated(fewer, a_, "sections_per_second<-5%").code, 0);
  EXPECT_EQ(compare({a_.path(), fewer.path()}).code, 0) << "nothing was to be kept";
}

TEST_F(Compare, AFigureThatNobodyMeasuredFails) {
  const Ran never = gated(a_, a_, "renewal.margin.p50<-10%");
  EXPECT_EQ(never.code, 99);
  EXPECT_EQ(never.err,
            "renewal.margin.p50<-10%: renewal.margin.p50 was measured neither in A nor in B\n");
  const Ran counted = gated(a_, a_, "audit.lost_updates>+0");
  EXPECT_EQ(counted.code, 0) << "none is a figure: " << counted.err;

  const TemporaryFile some("n.json", to_json(without_grants(fast_, "strategy-1")));
  const Ran others = gated(some, some, "acquire.p99>+10%");
  EXPECT_EQ(others.code, 0) << others.err;
  EXPECT_THAT(others.out, HasSubstr("acquire.p99 is in neither result: strategy-1\n"));
}

TEST_F(Compare, AConfidenceOutOfReachIsSaid) {
  const TemporaryFile fast("o.json", to_json(simulated_result({.repetitions = 4}, 1)));
  const TemporaryFile slow("p.json",
                           to_json(simulated_result({.repetitions = 4, .slowdown = 2}, 2)));
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {fast.path(), slow.path(), "--confidence"});
    return compare(more);
  };
  const Ran ran = with({"0.99"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("4 and 4 repetitions cannot show anything of 6 figures at 99 %: "
                              "--repeat 7 would"),
                    HasSubstr("too few repetitions to tell"), Not(HasSubstr("no difference"))));
  expect_refused(with({"0.99", "--fail-on", "acquire.p99>+10%"}),
                 HasSubstr("--fail-on: 4 and 4 repetitions cannot show anything of 3 figures at "
                           "99 %: --repeat 6 would"));
  EXPECT_EQ(with({"0.95", "--fail-on", "acquire.p99>+10%"}).code, 99);
}

TEST_F(Compare, RefusesAnotherKindUnlessForced) {
  results::Result other = slow_;
  other.workload["clients"] = std::int64_t{16};
  other.environment.cpu = "Another\nCPU";
  results::Result first = fast_;
  first.workload["clients"] = std::int64_t{8};
  const TemporaryFile a("c.json", to_json(first));
  const TemporaryFile b("d.json", to_json(other));
  expect_refused(
      compare({a.path(), b.path()}),
      AllOf(HasSubstr("clients 8 and 16"), HasSubstr("Another CPU"), HasSubstr("--force")));
  const Ran forced = compare({a.path(), b.path(), "--force"});
  EXPECT_EQ(forced.code, 0);
  EXPECT_THAT(forced.out, HasSubstr("they differ in clients 8 and 16"));
}

TEST_F(Compare, MistakesAreOneLine) {
  const TemporaryFile text("f.json", "not a result");
  results::Result without_runs = fast_, renamed = fast_;
  without_runs.runs.clear();
  for (results::Run& run : renamed.runs) run.strategy += "-renamed";
  const TemporaryFile no_runs("i.json", to_json(without_runs)), other("j.json", to_json(renamed));
  expect_refused(compare({a_.path(), "/tmp"}), HasSubstr("/tmp: cannot be read: Is a directory"));
  expect_refused(compare({a_.path(), text.path()}), HasSubstr(text.path() + ": not JSON"));
  expect_refused(compare({a_.path(), no_runs.path()}), HasSubstr("it contains no runs to compare"));
  expect_refused(compare({a_.path(), other.path()}), HasSubstr("no strategy in common"));
  expect_refused(compare({}), HasSubstr("expected two result files"));
  expect_refused(compare({a_.path()}), HasSubstr("given: 1"));
  expect_refused(compare({a_.path(), b_.path(), a_.path()}), HasSubstr("given: 3"));
  expect_refused(gated(a_, b_, "acquire.p9>+1%"), HasSubstr("no such figure"));
  expect_refused(compare({a_.path(), b_.path(), "--confidence", "1"}), HasSubstr("0.5 to 0.999"));
  expect_refused(compare({a_.path(), b_.path(), "--repeat", "5"}), HasSubstr("requires --run"));
  expect_refused(compare({a_.path(), b_.path(), "--strict-gate"}), HasSubstr("requires --fail-on"));
}

TEST(CompareRun, ConfigurationsAreCheckedBeforeAnythingIsMeasured) {
  const TemporaryFile good("good.toml", "strategies = [\"none\"]\nrepeat = 4\n");
  const TemporaryFile other("other.toml", "strategies = [\"local-mutex\"]\n");
  const auto refused = [&](const std::string& text, std::vector<std::string> more,
                           const testing::Matcher<const std::string&>& message) {
    const TemporaryFile bad("bad.toml", text);
    more.insert(more.begin(), {"--run", good.path(), bad.path()});
    expect_refused(compare(more), message);
  };
  refused("clients = 0\n", {}, AllOf(HasSubstr("bad.toml: clients"), HasSubstr("0")));
  refused("clints = 8\n", {}, HasSubstr("bad.toml: unknown key \"clints\""));
  refused("arrival = \"constant\"\n", {}, HasSubstr("bad.toml: --arrival requires --rate"));
  refused("strategies = [\"nonne\"]\n", {}, HasSubstr("bad.toml: no such strategy"));
  refused("out = \"-\"\n", {}, HasSubstr("bad.toml: out: "));
  refused("repeat = 3\n", {},
          HasSubstr("bad.toml: at least 4 repetitions are needed, and it has 3"));
  refused("", {"--repeat", "4", "--fail-on", "acquire.p99>+10%", "--confidence", "0.99"},
          HasSubstr("at least 5 repetitions are needed"));
  expect_refused(compare({"--run", good.path(), other.path()}),
                 HasSubstr("have no strategy in common"));
  expect_refused(compare({"--run", good.path()}), HasSubstr("expected two TOML files"));
  expect_refused(compare({"--run", good.path(), good.path(), "--columns", "nonsense"}),
                 HasSubstr("--columns"));
  const TemporaryFile saved("saved.toml", "strategies = [\"none\"]\nout = \"x.json\"\n");
  const TemporaryFile again("again.toml", "strategies = [\"none\"]\nout = \"./x.json\"\n");
  expect_refused(compare({"--run", saved.path(), again.path()}), HasSubstr("same out: x.json"));
  const TemporaryFile served("served.toml",
                             "strategies = [\"none\"]\nmetrics-listen = \"127.0.0.1:9464\"\n");
  expect_refused(compare({"--run", served.path(), served.path()}),
                 HasSubstr("same metrics-listen: 127.0.0.1:9464"));
}

TEST_F(Compare, HostileNamesAreInert) {
  const std::string hostile = "\x1b[2Jx|y,\"z\"\n=cmd()" + std::string(500, 'x');
  results::Result result = fast_;
  for (results::Run& run : result.runs) run.strategy = hostile;
  const TemporaryFile file("k.json", to_json(result));
  for (const char* format : {"table", "markdown", "json", "csv"}) {
    const Ran ran = compare({file.path(), file.path(), "--format", format});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, Not(HasSubstr("\x1b"))) << format;
  }
  EXPECT_THAT(compare({file.path(), file.path(), "--format", "markdown"}).out, HasSubstr("x\\|y"));
}

}  // namespace
}  // namespace lockbench::cli
