#include "results/stats/threshold.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "results/file/json.h"
#include "results/stats/comparison.h"
#include "results/stats/figures.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string threshold_error(std::string_view text) {
  const auto parsed = parse_threshold(text);
  return parsed ? "no error" : parsed.error();
}

bool kept(std::string_view text) {
  const auto parsed = parse_threshold(text);
  EXPECT_TRUE(parsed.has_value()) << parsed.error();
  return parsed && evaluate(*parsed, full_run()).kept();
}

TEST(Threshold, ReadsFiguresOperatorsAndUnits) {
  const auto threshold = parse_threshold(" acquire.p99 <= 5 ms ");
  ASSERT_TRUE(threshold.has_value()) << threshold.error();
  EXPECT_EQ(threshold->figure, "acquire.p99");
  EXPECT_EQ(threshold->comparison, Comparison::less_equal);
  EXPECT_DOUBLE_EQ(threshold->bound, 0.005);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<250ns")->bound, 250e-9);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<83us")->bound, 83e-6);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<1.5m")->bound, 90);
  EXPECT_DOUBLE_EQ(parse_threshold("hold.max<2h")->bound, 7200);
  EXPECT_DOUBLE_EQ(parse_threshold("sections_per_second>1e3")->bound, 1000);
  EXPECT_DOUBLE_EQ(parse_threshold("fairness.jain>=.9")->bound, 0.9);
}

TEST(Threshold, ComparesTheWayItSays) {
  EXPECT_TRUE(kept("audit.lost_updates==12"));
  EXPECT_FALSE(kept("audit.lost_updates==0"));
  EXPECT_TRUE(kept("audit.lost_updates!=0"));
  EXPECT_FALSE(kept("audit.lost_updates!=12"));
  EXPECT_FALSE(kept("audit.lost_updates<12"));
  EXPECT_TRUE(kept("audit.lost_updates<=12"));
  EXPECT_FALSE(kept("audit.lost_updates>12"));
  EXPECT_TRUE(kept("audit.lost_updates>=12"));
  EXPECT_TRUE(kept("acquire.p99<5ms"));
  EXPECT_FALSE(kept("acquire.p99<1ms"));
  EXPECT_TRUE(kept("sections_per_second>1000"));
}

TEST(Threshold, TellsWhatWasMeasured) {
  const Threshold threshold = *parse_threshold("acquire.p99<1ms");
  const ThresholdOutcome full = evaluate(threshold, full_run());
  EXPECT_EQ(full.measured, 0.00142);
  EXPECT_FALSE(full.kept());
  EXPECT_EQ(full.reason, "acquire.p99 is 1.42 ms");
  const ThresholdOutcome none = evaluate(threshold, simple_run("none"));
  EXPECT_FALSE(none.measured.has_value());
  EXPECT_FALSE(none.kept()) << "what was not measured";
  EXPECT_TRUE(none.is_unknown);
  EXPECT_EQ(none.reason, "acquire.p99 was not measured");
}

TEST(Threshold, UnknownFiguresNameCloseOnes) {
  EXPECT_THAT(threshold_error("aquire.p99<5ms"),
              AllOf(HasSubstr("'aquire.p99'"), HasSubstr("acquire.p99")));
  EXPECT_THAT(threshold_error("lost_updates==0"), HasSubstr("audit.lost_updates"));
  EXPECT_THAT(threshold_error("sections_per_sec>1"), HasSubstr("sections_per_second"));
  EXPECT_THAT(threshold_error("<1"), HasSubstr("no such figure ''"));
  EXPECT_THAT(threshold_error("renewal==0"), HasSubstr("no such figure"));
  EXPECT_THAT(threshold_error("strategy==0"), HasSubstr("no such figure"));
  EXPECT_THAT(threshold_error("generator.valid==1"), HasSubstr("no such figure"));
}

TEST(Threshold, ErrorsNameTheCulpritAndWhatIsAllowed) {
  EXPECT_THAT(threshold_error("acquire.p99"), HasSubstr("< <= > >= == !="));
  EXPECT_THAT(threshold_error("acquire.p99=5"), HasSubstr("< <= > >= == !="));
  EXPECT_THAT(threshold_error("acquire.p99<"), HasSubstr("'' is not a number"));
  EXPECT_THAT(threshold_error("acquire.p99<fast"), HasSubstr("'fast' is not a number"));
  EXPECT_THAT(threshold_error("acquire.p99<inf"), HasSubstr("'inf' is not a number"));
  EXPECT_THAT(threshold_error("acquire.p99<nan"), HasSubstr("'nan' is not a number"));
  EXPECT_THAT(threshold_error("acquire.p99<5min"),
              AllOf(HasSubstr("'min'"), HasSubstr("ns, us, ms, s, m, h")));
  EXPECT_THAT(threshold_error("acquire.p99<5ms<6ms"), HasSubstr("no such unit"));
  EXPECT_THAT(threshold_error(""), HasSubstr("operator"));
  EXPECT_THAT(threshold_error(std::string(100000, 'a') + "<1"), HasSubstr("longer than"));
}

TEST(Figures, AreTheNumbersOfTheFile) {
  Result result = full_result();
  result.runs[0].load.held_locks = 7;
  result.runs[0].load.pool = 5;
  result.runs[0].load.nodes =
      Nodes{.count = 5, .down = 1, .frozen = 1, .slow = 1, .slow_seconds = 0.1};
  result.runs[0].costs = {.throughput = Cost{0.04, Interval{0.01, 0.07}},
                          .node_seconds = Cost{40e-6, Interval{38e-6, 42e-6}},
                          .node_commands = 2};
  const nlohmann::json run = nlohmann::json::parse(to_json(result)).at("runs").at(0);
  std::map<std::string, double> expected;
  const nlohmann::json leaves = run.flatten();
  for (const auto& [at, value] : leaves.items()) {
    std::string path = at;
    std::replace(path.begin(), path.end(), '/', '.');
    const auto parent = nlohmann::json::json_pointer(at).parent_pointer();
    const bool in_list =
        path.find_first_of("0123456789") != std::string::npos && run.at(parent).is_array();
    const bool below_list =
        path.starts_with(".series") || path.starts_with(".faults") || path.starts_with(".ranks") ||
        path.starts_with(".quorum.votes") || path.starts_with(".commands.") ||
        path.starts_with(".quorum.node_seconds") || path.find("buckets") != std::string::npos;
    if (value.is_number() && !in_list && !below_list) {
      expected[path.substr(1)] = value.get<double>();
    }
  }
  std::map<std::string, double> found;
  for (const Figure& candidate : figures(result.runs[0])) {
    ASSERT_TRUE(candidate.value.has_value()) << candidate.path;
    found[candidate.path] = *candidate.value;
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(found.size(), 100U);
}

TEST(Figures, OfWhatARunDoesNotHaveAreThereWithoutValues) {
  for (const char* path :
       {"renewal.lost", "renewal.margin.histogram.overflow", "quorum.split_votes"}) {
    EXPECT_TRUE(figure(full_run(), path)) << path;
    EXPECT_EQ(figure(simple_run("none"), path), std::nullopt) << path;
  }
}

TEST(Threshold, ALowerBoundCannotShowThatAFigureIsSmall) {
  results::Run run = full_run();
  run.acquire.p99 = 0.002;
  run.acquire.at_least = {"p99"};
  run.acquire.buckets.clear();  // as in a condensed file: there is no upper bound
  const auto outcome = [&](const char* text) { return evaluate(*parse_threshold(text), run); };
  EXPECT_FALSE(outcome("acquire.p99<5ms").kept());
  EXPECT_EQ(outcome("acquire.p99<5ms").reason, "acquire.p99 is at least 2 ms");
  EXPECT_TRUE(outcome("acquire.p99<5ms").is_unknown) << "nor that it is large";
  EXPECT_FALSE(outcome("acquire.p99<1ms").is_unknown);
  EXPECT_TRUE(outcome("acquire.p99>1ms").kept());
}

/// 980 waits of 10 ms, ten of 100 ms, and some that were cut off after 20 ms.
results::Run cut_run(std::uint64_t cut) {
  results::Run run = full_run();
  run.duration_seconds = 10;
  run.outcomes.abandoned = cut;
  run.acquire = {.count = 990,
                 .p99 = 0.02,
                 .max = 0.1,
                 .buckets = {{0.01, 980}, {0.1, 10}},
                 .censored = {.count = cut, .buckets = {{0.02, cut}}},
                 .at_least = {"p99"}};
  return run;
}

TEST(Threshold, IsDecidedByBothSidesOfAWaitThatWasCutOff) {
  const results::Run run = cut_run(5);
  EXPECT_DOUBLE_EQ(find_figure(run, "acquire.p99").most, 0.1) << "as if none of the five had ended";
  const auto outcome = [&](const char* text) { return evaluate(*parse_threshold(text), run); };
  EXPECT_TRUE(outcome("acquire.p99<500ms").kept()) << "even if these had never ended";
  EXPECT_FALSE(outcome("acquire.p99<15ms").kept());
  EXPECT_FALSE(outcome("acquire.p99<15ms").is_unknown) << "even if these had ended at once";
  const ThresholdOutcome open = outcome("acquire.p99<50ms");
  EXPECT_TRUE(open.is_unknown);
  EXPECT_EQ(open.reason, "acquire.p99 is at least 20 ms and at most 100 ms");
}

TEST(Threshold, WhatWasCutOffCountsInFiguresThatAreNotShownAsBounds) {
  // The longest had ended, so a file does not name the maximum as a lower bound.
  results::Run run = cut_run(5);
  run.acquire.mean = 0.011;
  run.acquire.at_least.clear();
  run.handoff = run.acquire;
  const auto outcome = [&](const char* text) { return evaluate(*parse_threshold(text), run); };
  EXPECT_TRUE(outcome("acquire.max<150ms").is_unknown) << "one of the five may have been longer";
  EXPECT_EQ(outcome("acquire.max<150ms").reason, "acquire.max is at least 100 ms");
  EXPECT_FALSE(outcome("acquire.max<50ms").is_unknown);
  EXPECT_TRUE(outcome("acquire.max>50ms").kept());
  EXPECT_TRUE(outcome("acquire.mean<50ms").is_unknown);
  EXPECT_TRUE(outcome("acquire.p99<50ms").is_unknown);
  EXPECT_TRUE(outcome("handoff.max<150ms").is_unknown);
  EXPECT_TRUE(outcome("acquire.p50<15ms").kept()) << "whatever became of the five";
  EXPECT_TRUE(outcome("acquire.count<991").kept());
}

TEST(Threshold, CountsRefusedAcquisitionsAsWaitsWithoutEnd) {
  results::Run run = full_run();
  run.transactions.reset();
  run.acquire = {.count = 1000, .p90 = 0.01, .p99 = 0.01, .buckets = {{0.01, 1000}}};
  const auto outcome = [&](const char* text) { return evaluate(*parse_threshold(text), run); };
  run.outcomes = {.acquired = 1000, .refused = 5};
  EXPECT_TRUE(outcome("acquire.p99<20ms").kept()) << "p99 allows ten";
  run.outcomes.refused = 50;
  EXPECT_TRUE(outcome("acquire.p99<20ms").is_unknown);
  EXPECT_EQ(outcome("acquire.p99<20ms").reason,
            "acquire.p99 is at least 10 ms; 50 acquisitions were refused");
  EXPECT_TRUE(outcome("acquire.p90<20ms").kept());
  EXPECT_FALSE(outcome("acquire.p99<5ms").is_unknown);
  EXPECT_TRUE(outcome("release.p99<20ms").kept()) << "no wait for the lock";
  EXPECT_TRUE(outcome("acquire.censored.count<5").kept());
  run.transactions.emplace();
  EXPECT_TRUE(outcome("acquire.p99<20ms").kept()) << "tried again";
}

TEST(Threshold, SaysHowLongARunWouldDecideIt) {
  // Ten of a thousand may be longer, and there are as many in this run already.
  const auto remedy = [](const results::Run& run, const char* text) {
    return evaluate(*parse_threshold(text), run).remedy;
  };
  results::Run run = cut_run(15);
  EXPECT_EQ(find_figure(run, "acquire.p99").most, std::numeric_limits<double>::infinity());
  EXPECT_EQ(remedy(run, "acquire.p99<500ms"), "a run of about 15 s would decide it");
  run.outcomes.abandoned = 0;
  run.outcomes.timed_out = 15;
  EXPECT_EQ(remedy(run, "acquire.p99<500ms"),
            "a longer --acquire-timeout, above 500 ms, would decide it");
}

TEST(Regression, ReadsSharesAndUnits) {
  const auto share = parse_regression(" acquire.p99 > + 10 % ").value();
  EXPECT_EQ(share.figure, "acquire.p99");
  EXPECT_TRUE(share.more && share.is_share);
  EXPECT_DOUBLE_EQ(share.bound, 0.1);
  const auto absolute = parse_regression("handoff.p50>+200us").value();
  EXPECT_FALSE(absolute.is_share);
  EXPECT_DOUBLE_EQ(absolute.bound, 200e-6);
  EXPECT_FALSE(parse_regression("sections_per_second<-5%").value().more);
  EXPECT_EQ(parse_regression("audit.lost_updates>+0").value().bound, 0);
}

TEST(Regression, ABoundIsAChangeOfItsFigure) {
  const auto bound = [](std::string_view text, const Difference& difference) {
    return bound_of(parse_regression(text).value(), difference);
  };
  const Difference share{.a = 0.002, .relative = true};
  EXPECT_DOUBLE_EQ(bound("acquire.p99>+10%", share), 0.1);
  EXPECT_DOUBLE_EQ(bound("acquire.p99<-10%", share), -0.1);
  EXPECT_DOUBLE_EQ(bound("acquire.p99>+1ms", share), 0.5);
  const Difference number{.a = -4, .relative = false};
  EXPECT_DOUBLE_EQ(bound("audit.lost_updates>+3", number), 3);
  EXPECT_DOUBLE_EQ(bound("audit.lost_updates>+50%", number), 2);
  EXPECT_EQ(bound("audit.lost_updates>+500%", {.a = 0}), 0) << "from nothing, anything is more";
}

TEST(Regression, MistakesAreNamedInOneLine) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse_regression(text);
    return parsed ? "no error" : parsed.error();
  };
  EXPECT_THAT(error("acquire.p9>+10%"), HasSubstr("no such figure 'acquire.p9'"));
  for (const char* text : {"", ">", "<", "acquire.p99", "acquire.p99>10%", "acquire.p99<+10%",
                           "acquire.p99>-10%", "acquire.p99>+-10%", "acquire.p99==1"}) {
    EXPECT_THAT(error(text), HasSubstr("expected FIGURE>+NUMBER")) << text;
  }
  EXPECT_THAT(error("acquire.p99>+"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+%"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+ten%"), HasSubstr("is not a number"));
  EXPECT_THAT(error("acquire.p99>+10parsec"), HasSubstr("no such unit"));
  EXPECT_THAT(error("acquire.p99>+1e999%"), HasSubstr("is not a number"));
  EXPECT_THAT(error(std::string(1000, 'x')), HasSubstr("longer than"));
  EXPECT_THAT(error("acquire.p99\n>+10%"), testing::Not(HasSubstr("\n")));
}

Good direction(const std::string& path) { return compared_figure(path).good; }

TEST(ComparedFigure, KnowsWhichWayIsBetter) {
  for (const char* path : {"sections_per_second", "sections", "outcomes.acquired",
                           "renewal.margin.p50", "quorum.validity.min", "fairness.jain"}) {
    EXPECT_EQ(direction(path), Good::higher) << path;
  }
  for (const char* path : {"acquire.p999", "fairness.longest_wait_seconds", "renewal.slip.max",
                           "replication.wait.p99", "commands_per_section"}) {
    EXPECT_EQ(direction(path), Good::lower) << path;
  }
  for (const char* path :
       {"acquire.count", "renewal.margin.count", "acquire.histogram.overflow",
        "generator.cpu_share", "wait.backoff_seconds", "costs.throughput.mean"}) {
    EXPECT_EQ(direction(path), Good::unknown) << path;
  }
  EXPECT_EQ(compared_figure("renewal.margin.p50").unit, Unit::seconds);
  EXPECT_EQ(compared_figure("sections").unit, Unit::count);
}

using Runs = std::vector<Run>;

/// This many samples of 1 ms, of 50 ms, and cut off at 10 ms.
Distribution batch(std::uint64_t brief, std::uint64_t lasting, std::uint64_t cut = 0) {
  Distribution made;
  made.count = brief + lasting;
  made.buckets = {{0.001, brief}, {0.050, lasting}};
  if (cut > 0) made.censored = {.count = cut, .buckets = {{0.010, cut}}};
  return made;
}

Runs runs_of(std::size_t number, const Distribution& acquire) {
  Run run;
  run.acquire = acquire;
  run.outcomes.acquired = acquire.count;
  run.sections = acquire.count;
  return Runs(number, run);
}

Ruling ruling(const Runs& runs, const char* objective = "acquire.p99<20ms") {
  std::vector<const Run*> all;
  for (const auto& run : runs) all.push_back(&run);
  return judge(parse_threshold(objective).value(), all);
}

Decision decision(const Runs& runs, const char* objective = "acquire.p99<20ms") {
  return ruling(runs, objective).decision;
}

TEST(Batches, DecideByAnIntervalOnOneSideOfTheBound) {
  EXPECT_EQ(decision(runs_of(10, batch(498, 2))), Decision::kept);
  EXPECT_EQ(decision(runs_of(10, batch(495, 5))), Decision::open) << "1 % is the bound itself";
  EXPECT_EQ(decision(runs_of(10, batch(490, 10))), Decision::missed);
  const Ruling kept = ruling(runs_of(10, batch(498, 2)));
  EXPECT_EQ(kept.samples, 5000);
  EXPECT_DOUBLE_EQ(kept.figure.high, 0.001);
}

TEST(Batches, NeedTenSamplesBeyondThePercentile) {
  EXPECT_EQ(samples_needed("acquire.p50"), 20);
  EXPECT_EQ(samples_needed("acquire.p99"), 1000);
  EXPECT_EQ(samples_needed("release.p999"), 10'000);
  EXPECT_EQ(samples_needed("acquire.mean"), 0);
  EXPECT_EQ(decision(runs_of(9, batch(100, 0))), Decision::open);
  EXPECT_EQ(decision(runs_of(10, batch(100, 0))), Decision::kept);
  EXPECT_EQ(decision(runs_of(9, batch(100, 0)), "acquire.p90<20ms"), Decision::kept);
  EXPECT_EQ(decision(runs_of(9, batch(9, 1))), Decision::open) << "nine samples beyond the bound";
  EXPECT_EQ(decision(runs_of(10, batch(9, 1))), Decision::missed);
}

TEST(Batches, NeedFiveRuns) {
  EXPECT_EQ(decision(runs_of(4, batch(5000, 0))), Decision::open);
  EXPECT_EQ(decision(runs_of(4, batch(0, 5000))), Decision::open);
  EXPECT_EQ(decision(runs_of(4, batch(5000, 0)), "acquire.max<20ms"), Decision::open);
  EXPECT_EQ(decision(runs_of(5, batch(5000, 0))), Decision::kept);
}

TEST(Batches, WhatARunDidNotMeasureIsNeitherKeptNorMissed) {
  Runs runs = runs_of(5, batch(5000, 0));
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::open);
  for (auto& run : runs) run.handoff = {.count = 1, .max = 0.001};
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::kept);
  runs[2].handoff = {};
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::open);
  runs[1].handoff.max = 1;
  EXPECT_EQ(decision(runs, "handoff.max<5ms"), Decision::missed);
}

TEST(Batches, TrustLongWaitsThatComeTogetherLess) {
  Runs runs = runs_of(10, batch(498, 2));
  EXPECT_EQ(decision(runs), Decision::kept);
  // The same twenty, but in one run.
  for (auto& run : runs) run.acquire = batch(500, 0);
  runs[3].acquire = batch(480, 20);
  EXPECT_EQ(decision(runs), Decision::open);
}

TEST(Batches, CensoredSamplesNeverKeepWhatTheyMayHaveMissed) {
  EXPECT_EQ(decision(runs_of(10, batch(497, 0, 3))), Decision::kept);
  EXPECT_EQ(decision(runs_of(10, batch(494, 0, 6))), Decision::open);
  EXPECT_EQ(decision(runs_of(10, batch(400, 0, 100))), Decision::open) << "nor miss it";
  EXPECT_EQ(decision(runs_of(10, batch(400, 0, 100)), "acquire.p99<5ms"), Decision::missed);
}

TEST(Batches, ALongestWaitThatWasCutOffIsNeitherKeptNorMissedBelowTheBound) {
  Runs runs = runs_of(5, batch(100, 0));
  for (auto& run : runs) run.acquire.max = 0.010;
  EXPECT_EQ(decision(runs, "acquire.max<20ms"), Decision::kept);
  runs[2].acquire.at_least = {"max"};
  EXPECT_EQ(decision(runs, "acquire.max<20ms"), Decision::open);
  EXPECT_EQ(decision(runs, "acquire.max<5ms"), Decision::missed);
  EXPECT_EQ(decision(runs, "acquire.mean<20ms"), Decision::kept);
  runs[2].acquire = batch(100, 0, 1);
  EXPECT_EQ(decision(runs, "acquire.max<20ms"), Decision::open) << "a shorter one, too";
  EXPECT_EQ(decision(runs, "acquire.mean<20ms"), Decision::open);
}

TEST(Batches, CountWhatWasNeverGranted) {
  Runs runs = runs_of(10, batch(500, 0));
  for (auto& run : runs) run.outcomes.refused = 10;
  EXPECT_EQ(decision(runs), Decision::missed);
  EXPECT_EQ(ruling(runs).samples, 5100);
  for (auto& run : runs) run.outcomes = {.acquired = 500, .failed = 10};
  EXPECT_EQ(decision(runs), Decision::open) << "a failure may not be the lock's";
}

TEST(Batches, OtherFiguresAreDecidedByTheRuns) {
  Runs runs = runs_of(6, batch(100, 0));
  const std::vector<double> rates{98, 99, 100, 101, 102, 100};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].sections_per_second = rates[i];
  EXPECT_EQ(decision(runs, "sections_per_second>98"), Decision::kept);
  EXPECT_EQ(decision(runs, "sections_per_second>=100.5"), Decision::open);
  EXPECT_EQ(decision(runs, "sections_per_second>102"), Decision::missed);
  EXPECT_EQ(decision(runs, "sections_per_second<98"), Decision::missed);
  for (auto& run : runs) run.sections_per_second = 100;
  EXPECT_EQ(decision(runs, "sections_per_second>=100"), Decision::kept) << "the bound itself";
  EXPECT_EQ(decision(runs, "sections_per_second>100"), Decision::missed);
  EXPECT_EQ(decision(runs, "outcomes.timed_out<=0"), Decision::kept);
  EXPECT_EQ(decision(runs, "outcomes.timed_out<0"), Decision::missed);
  // These figures are judged run by run.
  EXPECT_EQ(decision(runs, "audit.lost_updates==0"), Decision::kept);
  runs[5].audit.lost_updates = 1;
  EXPECT_EQ(decision(runs, "audit.lost_updates==0"), Decision::missed);
}

}  // namespace
}  // namespace lockbench::results
