#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "cli/commands/measurement.h"
#include "cli/console/publish.h"
#include "results/file/json.h"
#include "results/tables/hazards.h"
#include "strategies/registry.h"
#include "tests/integration/support/program.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"
#include "tests/unit/results/samples.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

TEST(ExitCode, OfEachEndingAlone) {
  const std::vector<std::pair<Ending, int>> codes{{{}, 0},
                                                  {{.interrupted = true}, 105},
                                                  {{.exclusion_broken = true}, 3},
                                                  {{.rank_lost = true}, 2},
                                                  {{.errors = true}, 2},
                                                  {{.nothing_granted = true}, 2},
                                                  {{.invalid = true}, 0},
                                                  {{.invalid = true, .strict = true}, 4},
                                                  {{.threshold_missed = true}, 99},
                                                  {{.undecided = true}, 5},
                                                  {{.planned_too_high = true}, 99}};
  for (const auto& [ending, code] : codes) EXPECT_EQ(exit_code_of(ending), code);
}

TEST(ExitCode, GravestFirst) {
  Ending ending{true, true, true, true, true, true, true, true, true, true};
  EXPECT_EQ(exit_code_of(ending), 3) << "the launcher stopped it, as a rank was lost";
  ending.rank_lost = false;
  EXPECT_EQ(exit_code_of(ending), 105);
  ending.interrupted = false;
  EXPECT_EQ(exit_code_of(ending), 3);
  ending.exclusion_broken = false;
  EXPECT_EQ(exit_code_of(ending), 99) << "an error of one step does not hide it";
  ending.planned_too_high = false;
  EXPECT_EQ(exit_code_of(ending), 2);
  ending.errors = ending.nothing_granted = false;
  EXPECT_EQ(exit_code_of(ending), 4);
  ending.invalid = false;
  EXPECT_EQ(exit_code_of(ending), 99);
  ending.threshold_missed = false;
  EXPECT_EQ(exit_code_of(ending), 5) << "a gate that is not decided does not pass";
}

results::Result result_with(const std::string& strategy, results::Verdict verdict) {
  results::Result result;
  result.runs.resize(2);
  result.runs.back().strategy = strategy;
  result.runs.back().audit.verdict = verdict;
  return result;
}

TEST(Ending, OfACapacityIsMissedOnlyByAMiss) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto code = [](const results::Capacity& capacity) {
    Ending ending;
    add_to(ending, capacity);
    return exit_code_of(ending);
  };
  EXPECT_EQ(code({.lowest = 50, .highest = 80}), 0);
  EXPECT_EQ(code({.lowest = 50, .highest = 80, .planned_rate = 40}), 0);
  EXPECT_EQ(code({.lowest = 50, .highest = 80, .planned_rate = 60}), 5);
  EXPECT_EQ(code({.lowest = 50, .highest = none, .planned_rate = 60}), 5);
  EXPECT_EQ(code({.lowest = 50, .highest = 80, .planned_rate = 80}), 99);
  EXPECT_EQ(code({.lowest = 0, .highest = 80, .planned_rate = 60}), 5);
  EXPECT_EQ(code({.lowest = 0, .highest = 80}), 99);
  EXPECT_EQ(code({.lowest = 0, .highest = none}), 5) << "nothing was decided in the time";
}

TEST(Ending, AControlMayBreakExclusion) {
  const auto broken = [](const std::string& strategy, results::Verdict verdict) {
    return ending_of(result_with(strategy, verdict)).exclusion_broken;
  };
  EXPECT_TRUE(broken("local-mutex", results::Verdict::violated));
  EXPECT_FALSE(broken("local-mutex", results::Verdict::exclusive));
  EXPECT_FALSE(broken("none", results::Verdict::violated));
  EXPECT_FALSE(broken("none", results::Verdict::unprotected));
}

TEST(Ending, EveryKindOfErrorCounts) {
  using Run = results::Run;
  const auto with = [](void (*change)(Run&)) {
    results::Result result;
    result.runs.resize(1);
    change(result.runs.front());
    return ending_of(result);
  };
  for (void (*change)(Run&) : std::vector<void (*)(Run&)>{
           [](Run& run) { run.outcomes.failed = 1; }, [](Run& run) { run.outcomes.unknown = 1; },
           [](Run& run) { run.releases_failed = 1; },
           [](Run& run) { run.errors.emplace_back("counter lost"); },
           [](Run& run) { run.audit.resource_failures = 1; }}) {
    EXPECT_TRUE(with(change).errors);
  }
  EXPECT_FALSE(with([](Run& run) { run.outcomes.timed_out = 1; }).errors);
  EXPECT_TRUE(with([](Run& run) { run.generator.valid = false; }).invalid);
}

TEST(Ending, WhatFailsBecauseItWasStruckIsNoError) {
  results::Result result;
  result.runs.resize(1);
  results::Run& run = result.runs.front();
  run.outcomes.failed = 5;
  run.errors = {"5 × connection refused"};
  EXPECT_TRUE(ending_of(result).errors);
  run.faults = {{.fault = "store-kill"}};
  EXPECT_FALSE(ending_of(result).errors);
  run.audit.resource_failures = 1;
  EXPECT_TRUE(ending_of(result).errors) << "no fault strikes the counter";
  run.audit.resource_failures = 0;
  run.sections = 1;
  run.audit.verdict = results::Verdict::unaudited;
  EXPECT_TRUE(ending_of(result).errors);
}

TEST(Ending, SectionsThatNobodyAuditedAreAnError) {
  results::Result result = result_with("redis-set-nx", results::Verdict::unaudited);
  EXPECT_FALSE(ending_of(result).errors) << "without a section there is nothing to audit";
  result.runs.back().sections = 1;
  EXPECT_TRUE(ending_of(result).errors);
  EXPECT_FALSE(ending_of(result).exclusion_broken);
  result.runs.back().shared_sections = 1;
  EXPECT_FALSE(ending_of(result).errors) << "who only reads writes nothing to be audited";
}

TEST(Thresholds, ControlsAreExemptUnlessNamed) {
  results::Result result = result_with("none", results::Verdict::unprotected);
  result.runs.erase(result.runs.begin());
  result.runs.front().audit.lost_updates = 7;
  const std::vector thresholds = {*results::parse_threshold("audit.lost_updates==0"),
                                  *results::parse_threshold("outcomes.failed==0")};
  const Descriptor* none = find_strategy("none");
  ASSERT_NE(none, nullptr);
  const UnkeptThresholds exempt = unkept_thresholds(thresholds, result, {{none, false}});
  EXPECT_THAT(exempt.missed, SizeIs(0));
  ASSERT_THAT(exempt.checks, SizeIs(2));
  EXPECT_EQ(exempt.checks[0].outcome, results::Check::Outcome::skipped);
  EXPECT_EQ(exempt.checks[1].outcome, results::Check::Outcome::passed);
  const auto missed = unkept_thresholds(thresholds, result, {{none, true}}).missed;
  ASSERT_THAT(missed, SizeIs(1));
  EXPECT_THAT(missed.front(), HasSubstr("audit.lost_updates==0 by none"));
  EXPECT_THAT(missed.front(), HasSubstr("7"));
}

TEST(Thresholds, AreNotDecidedByWaitsThatWereCutOffNorByADisturbedRun) {
  results::Result result = result_with("redis-queue", results::Verdict::exclusive);
  result.runs.erase(result.runs.begin());
  results::Run& run = result.runs.front();
  run.duration_seconds = 10;
  run.outcomes.abandoned = 2;
  run.acquire = {.count = 100,
                 .p99 = 0.001,
                 .buckets = {{0.001, 100}},
                 .censored = {.count = 2, .buckets = {{0.001, 2}}},
                 .at_least = {"p99"}};
  const std::vector thresholds = {*results::parse_threshold("acquire.p99<500ms")};
  const Descriptor* queue = find_strategy("redis-queue");
  ASSERT_NE(queue, nullptr);
  UnkeptThresholds unkept = unkept_thresholds(thresholds, result, {{queue, true}});
  EXPECT_THAT(unkept.missed, SizeIs(0));
  ASSERT_THAT(unkept.undecided, SizeIs(1));
  EXPECT_THAT(unkept.undecided.front(), HasSubstr("not decided: acquire.p99<500ms by redis-queue"));
  EXPECT_THAT(unkept.undecided.front(), HasSubstr("a run of about 20 s would decide it"));

  run.acquire = {.count = 100, .p99 = 0.6, .buckets = {{0.6, 100}}};
  EXPECT_THAT(unkept_thresholds(thresholds, result, {{queue, true}}).missed, SizeIs(1));
  run.generator.valid = false;
  run.generator.reasons = {"other programs used 40 % of the machine's CPU"};
  unkept = unkept_thresholds(thresholds, result, {{queue, true}});
  EXPECT_THAT(unkept.missed, SizeIs(0)) << "it may be the other programs' fault";
  ASSERT_THAT(unkept.undecided, SizeIs(1));
  EXPECT_THAT(unkept.undecided.front(), HasSubstr("but other programs used 40 %"));
  run.generator = {};
  run.interrupted = true;
  unkept = unkept_thresholds(thresholds, result, {{queue, true}});
  ASSERT_THAT(unkept.undecided, SizeIs(1));
  EXPECT_THAT(unkept.undecided.front(), HasSubstr("but it was cut short"));
}

loadgen::Progress some_progress() {
  loadgen::Progress progress;
  progress.strategy = "redis-setnx";
  progress.run = 3;
  progress.runs = 12;
  progress.phase = loadgen::Progress::Phase::measuring;
  progress.done = 0.456;
  progress.sections_per_second = 12345;
  progress.failed = 2;
  return progress;
}

TEST(ProgressText, SaysHowFarItIs) {
  EXPECT_EQ(progress_text(some_progress()),
            "redis-setnx (3/12) measuring 46 %, 12.3k sections/s, 2 failed");
  loadgen::Progress connecting = some_progress();
  connecting.phase = loadgen::Progress::Phase::connecting;
  connecting.failed = 0;
  connecting.clients_connected = 120;
  connecting.clients = 10'000;
  EXPECT_EQ(progress_text(connecting), "redis-setnx (3/12) connecting 120/10000 clients");
}

TEST(ProgressView, IsQuietWhenAskedToBeAndStillWarns) {
  for (const bool terminal : {false, true}) {
    Written written;
    Console console(written.stream(), terminal, true);
    ProgressView view(console, [] { return TimePoint{}; });
    view.on_progress(some_progress());
    console.note("note");
    EXPECT_EQ(written.text(), "");
    view.on_warning("redis://:hunter2@h\n");
    EXPECT_EQ(written.text(), "warning: redis://***@h \n");
  }
}

TEST(KnownFlaws, AreTheGravestOfEachStrategyAndWhatReplacesIt) {
  results::Result result = results::minimal_result();
  for (const Descriptor* strategy : all_strategies()) {
    result.runs.push_back(results::simple_run(std::string(strategy->name)));
  }
  const results::KnownFlaws flaws = known_flaws(result);
  for (const Descriptor* strategy : all_strategies()) {
    const auto flaw = flaws.find(strategy->name);
    ASSERT_NE(flaw, flaws.end()) << strategy->name;
    EXPECT_EQ(flaw->second.superseded_by, strategy->superseded_by);
    for (const KnownHazard& hazard : strategy->hazards) {
      const std::string_view outcome = to_string(hazard.outcome);
      if (!results::does_harm(outcome)) continue;
      const auto shown =
          std::find_if(strategy->hazards.begin(), strategy->hazards.end(),
                       [&](const KnownHazard& one) { return one.scenario == flaw->second.hazard; });
      EXPECT_GE(results::gravity(to_string(shown->outcome)), results::gravity(outcome))
          << strategy->name << " falls to " << hazard.scenario;
    }
  }
}

class ResultFileTest : public testing::Test {
 protected:
  /// The outputs to stderr and stdout.
  template <class Use>
  std::pair<std::string, std::string> outputs(const std::string& path, const Use& use) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    {
      Console console(stderr, false, false);
      ResultFile file(path, console);
      use(file);
    }
    return {testing::internal::GetCapturedStderr(), testing::internal::GetCapturedStdout()};
  }

  test::Scratch scratch_;
  results::Result result_ = results::minimal_result();
};

TEST_F(ResultFileTest, IsThereAfterEachStepAndSaysSoAtTheEnd) {
  const std::string path = scratch_ / "r.json";
  result_.interrupted = true;
  const auto [during, nothing] = outputs(path, [&](ResultFile& file) {
    file.keep(result_);
    EXPECT_TRUE(results::load(path)->interrupted);
  });
  EXPECT_EQ(during, "");
  result_.interrupted = false;
  const auto [at_end, printed] =
      outputs(path, [&](ResultFile& file) { EXPECT_TRUE(file.save(result_)); });
  EXPECT_EQ(at_end, "saved in " + path + "\n");
  EXPECT_FALSE(results::load(path)->interrupted);
  EXPECT_EQ(nothing + printed, "");
}

TEST_F(ResultFileTest, IsSavedAfterAStepOnlyIfThatTakesLittleOfTheTime) {
  Written written;
  Console console(written.stream(), false, false);
  const std::string path = scratch_ / "r.json";
  TimePoint now{1h};
  // Each reading of the clock takes 100 ms, so that saving does.
  ResultFile file(path, console, [&] { return now += 100ms; });
  const auto saved = [&] { return results::load(path)->runs.size(); };
  int saves = 0;
  for (int run = 1; run <= 100; ++run) {
    result_.runs.push_back(results::simple_run("none"));
    now += 500ms;
    const std::size_t before = run == 1 ? 0 : saved();
    file.keep_step(result_);
    saves += saved() != before ? 1 : 0;
  }
  EXPECT_GE(saves, 20) << "what a crash loses is bounded";
  EXPECT_LE(saves, 30) << "and so is the time that saving takes";
  file.keep(result_);
  EXPECT_EQ(saved(), 100U);
}

TEST_F(ResultFileTest, AFullDiskIsSaidOnceAndDecidesAtTheEnd) {
  const test::Variable folder("TMPDIR", scratch_.path());
  const auto [said, printed] = outputs("/dev/full", [&](ResultFile& file) {
    for (int step = 0; step < 3; ++step) file.keep(result_);
    EXPECT_FALSE(file.save(result_));
  });
  EXPECT_EQ(said.find("not saved so far: "), said.rfind("not saved so far: "));
  EXPECT_THAT(said, HasSubstr("not saved so far: cannot write /dev/full"));
}

TEST_F(ResultFileTest, StdoutGetsItOnce) {
  const auto [said, printed] = outputs(std::string(kStdout), [&](ResultFile& file) {
    file.keep(result_);
    file.keep(result_);
    EXPECT_TRUE(file.save(result_));
  });
  EXPECT_EQ(printed, results::to_json(result_));
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace lockbench::cli
