#include "results/file/loads.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "results/stats/load_figures.h"
#include "results/tables/runs.h"
#include "results/tables/show.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

const Load near{.name = "alone", .clients = 1};
const Load far{.name = "alone", .clients = 1, .rtt_seconds = 0.001};
const Load low{.name = "demand", .clients = 32, .hold_seconds = 0.002, .rate = 150};
const Load high{.name = "demand", .clients = 32, .hold_seconds = 0.002, .rate = 350};
const Load saturated{.name = "saturated", .clients = 8, .hold_seconds = 0.001};

Distribution around(double p50, double p99) {
  return {.count = 1000, .mean = p50, .min = p50, .p50 = p50, .p99 = p99, .p999 = p99, .max = p99};
}

/// The runs of an overview. `worst`: the longest wait.
void add_strategy(Result& result, const std::string& name, double worst,
                  Verdict verdict = Verdict::exclusive) {
  for (const Load& load : {near, far, low, high, saturated}) {
    Run& run = result.runs.emplace_back(simple_run(name));
    run.load = load;
    run.sections = run.outcomes.acquired = 2000;
    run.sections_per_second = 800;
    run.acquire = around(0.0001 + load.rtt_seconds, worst);
    run.release = around(0.0001 + load.rtt_seconds, worst);
    run.fairness.by_client = ByClient{.worst_p99 = worst};
    run.fairness.longest_wait_seconds = worst;
    run.awaited_releases = 1000;
    run.direct_handoffs = 250;
    run.audit.increments = 2000;
    run.audit.contended_grants = load.name == "alone" ? 0 : 1500;
    run.audit.verdict = load.name == "alone" ? Verdict::untested : verdict;
  }
}

Run& run_of(Result& result, const std::string& strategy, const Load& load) {
  return *std::find_if(result.runs.begin(), result.runs.end(), [&](const Run& run) {
    return run.strategy == strategy && run.load == load;
  });
}

std::vector<std::string> row_of(const Table& table, const std::string& strategy) {
  for (const auto& row : table.rows) {
    if (row.front().text == strategy) return texts_of(row);
  }
  return {};
}

TEST(Loads, AResultIsSplitByLoad) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  add_strategy(result, "b", 0.02);
  const auto parts = split_by_load(result);
  ASSERT_THAT(parts, SizeIs(5));
  for (const Result& part : parts) EXPECT_THAT(part.runs, SizeIs(2));
  EXPECT_EQ(parts[3].workload.at("rate"), OptionValue(350.0));
  EXPECT_EQ(parts[3].workload.at("clients"), OptionValue(std::int64_t{32}));
}

TEST(Loads, EachLoadHasATableOfItsOwn) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  const auto tables = load_tables(result, {});
  ASSERT_THAT(tables, SizeIs(3));
  const auto cell = [](const Table& table, const std::string& key) {
    return chosen(table, {key})->rows.at(0).at(0).text;
  };
  EXPECT_EQ(cell(tables[0].table, "round_trips_per_section"), "2");
  EXPECT_EQ(cell(tables[1].table, "point2_p99_seconds"), "10 ms");
  EXPECT_EQ(cell(tables[2].table, "share_of_ideal"), "80.0 %");
  EXPECT_EQ(cell(tables[2].table, "handed_over_share"), "25.0 %");
}

TEST(Loads, TheIdealOfOneKeyIsOnlyForSectionsThatExcludeEachOther) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  const auto has_ideal = [&](const std::string& option, const OptionValue& value) {
    result.workload = {{option, value}};
    return chosen(load_tables(result, {})[2].table, {"share_of_ideal"}).has_value();
  };
  EXPECT_TRUE(has_ideal("keys", std::int64_t{1}));
  EXPECT_FALSE(has_ideal("keys", std::int64_t{5}));
  EXPECT_FALSE(has_ideal("keys", std::string("per-client")));
  EXPECT_FALSE(has_ideal("shared_share", 0.5));
}

/// Two locks at two rates and two numbers of clients; `full` has no time left at 1001/s.
Result swept_result() {
  Result result = minimal_result();
  result.workload["rate"] = std::vector<std::string>{"1001", "1000"};
  result.workload["clients"] = std::vector<std::string>{"8", "2"};
  for (const char* strategy : {"full", "free"}) {
    for (const double rate : {1001.0, 1000.0}) {
      for (const std::uint64_t clients : {8U, 2U}) {
        Run& run = result.runs.emplace_back(simple_run(strategy));
        run.load = {.name = "demand", .clients = clients, .hold_seconds = 0.001, .rate = rate};
        run.sections = run.outcomes.acquired = 2000;
        run.sections_per_second = rate;
        run.acquire = around(0.001, 0.02);
        run.lock_taken = run.strategy == "full" && rate > 1000 ? 0.99 : 0.9;
      }
    }
  }
  return result;
}

TEST(Sweep, HasOneTableThatSaysFirstWhereALockIsFull) {
  const Result result = swept_result();
  const auto tables = load_tables(result, {});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(tables[0].title,
            "demand: how long a client waits below the capacity of the lock "
            "(hold 1 ms)");
  std::vector<std::vector<std::string>> rows;
  const auto some = chosen(tables[0].table, {"strategy", "clients", "rate", "lock_taken"});
  for (const auto& row : some->rows) rows.push_back(texts_of(row));
  EXPECT_EQ(rows.size(), 8U);
  EXPECT_THAT(rows[0], ElementsAre("full", "2", "1k", "90.0 %"));
  EXPECT_THAT(rows[1], ElementsAre("full", "2", "1k", "99.0 %"));
  EXPECT_THAT(rows[2], ElementsAre("full", "8", "1k", "90.0 %"));
  EXPECT_EQ(some->rows[1][3].tone, Tone::bad);
  EXPECT_THAT(conclusions(result, {})[0],
              HasSubstr("Full: full from demand at 1001/s, 2 clients on (the lock is taken 99.0 % "
                        "of the time): 1k/s are served"));
  EXPECT_THAT(conclusions(result, {})[1], Not(HasSubstr("Full:")));
  Result closed = result;
  for (auto& run : closed.runs) run.load.rate.reset();
  EXPECT_THAT(conclusions(closed, {})[0], Not(HasSubstr("Full:"))) << "waits end with the clients'";
}

TEST(Sweep, ALockIsFullOnlyByWaitsInVain) {
  Result result = swept_result();
  for (results::Run& run : result.runs) run.lock_taken = 0.5;
  const auto full = [&](const std::function<void(results::Run&)>& change) {
    for (results::Run& run : result.runs) change(run);
    return testing::Value(*render(result, {}, {}), HasSubstr("Full: "));
  };
  EXPECT_FALSE(full([](results::Run& run) { run.outcomes.failed = run.outcomes.unknown = 1000; }));
  EXPECT_FALSE(full([](results::Run& run) { run.outcomes.refused = 1000; }));
  EXPECT_TRUE(full([](results::Run& run) { run.outcomes.timed_out = 1000; }));
  EXPECT_FALSE(full([](results::Run& run) { run.faults = {FaultMark{.fault = "store-kill"}}; }))
      << "nobody is served meanwhile";
}

TEST(Sweep, HasALabelForEachLoadHoweverCloseTheyAre) {
  const Result result = swept_result();
  std::set<std::string> labels;
  for (const auto& run : result.runs) labels.insert(label(run.load, result));
  EXPECT_THAT(labels, SizeIs(4));
  EXPECT_THAT(hgrm_files(result), SizeIs(8)) << "no file of percentiles replaces another";
}

TEST(Loads, NoShareIsAboveAllWhereTheWarmUpBeganAHandoff) {
  results::Run run = simple_run("a");
  run.awaited_releases = 205;
  run.direct_handoffs = 206;
  const std::vector<const results::Run*> runs{&run};
  EXPECT_EQ(ratio_of_sums(runs, "direct_handoffs", "awaited_releases"), 1.0);
}

TEST(Loads, OvertakingsAreDividedByGrantsAlsoWhereASectionTakesSeveralLocks) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  auto& run = run_of(result, "a", saturated);
  run.outcomes.acquired = 4 * run.sections;
  run.overtakings = 2 * run.sections;
  const auto table = chosen(load_tables(result, {})[2].table, {"overtakings_per_grant"});
  EXPECT_EQ(table->rows.at(0).at(0).text, "0.5");
}

TEST(Loads, ALockThatCannotServeTheDemandHasNoPercentiles) {
  Result result = minimal_result();
  add_strategy(result, "slow", 0.01);
  results::Run& run = run_of(result, "slow", high);
  run.acquire.count = 710;
  run.outcomes = {.acquired = 710, .abandoned = 290 + high.clients};  // one for each waiting client
  const std::vector<std::string> row = row_of(load_tables(result, {})[1].table, "slow");
  EXPECT_THAT(row, ElementsAre("slow", "1", "100 µs", "10 ms", "–", "71 % served", "–", "–"));
}

TEST(Loads, TheLowestDemandDecides) {
  Result result = minimal_result();
  add_strategy(result, "late", 0.01);
  add_strategy(result, "early", 2);
  run_of(result, "late", high).acquire.p99 = 5;
  EXPECT_THAT(tiers_under(result, "demand"), ElementsAre(Pair("early", 2), Pair("late", 1)));
}

TEST(Loads, AQueueAtTheEndIsNoOverload) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  auto& run = run_of(result, "a", high);
  run.outcomes.acquired = run.acquire.count = 100;
  run.outcomes.abandoned = high.clients;
  EXPECT_EQ(served_share({&run}), 1);
  run.outcomes.timed_out = 100;
  EXPECT_EQ(served_share({&run}), 0.5);
  run.outcomes = {.acquired = 100};
  run.acquire.count = 100 + high.clients;
  EXPECT_EQ(served_share({&run}), 1) << "granted after the measured part";
  run.acquire.count += 100;
  EXPECT_EQ(served_share({&run}), 0.5) << "what was only queued is not served in time";
  run.acquire.count = 0;
  run.outcomes = {.abandoned = 3};
  EXPECT_EQ(served_share({&run}), 0) << "nobody was served";
}

TEST(Loads, FourSentencesFollowFromTheFigures) {
  Result result = minimal_result();
  add_strategy(result, "fair", 0.01);
  add_strategy(result, "greedy", 2);
  add_strategy(result, "broken", 0.001, Verdict::violated);
  run_of(result, "greedy", far).acquire.p50 = 0.0005;
  const auto said = conclusions(result, {});
  ASSERT_THAT(said, SizeIs(4));
  EXPECT_THAT(said[0], AllOf(HasSubstr("fair and greedy"), Not(HasSubstr("broken"))));
  // Without events the Poisson bound is 3; each strategy had 4,500 contended grants.
  EXPECT_THAT(said[0], HasSubstr("at most 666 in a million"));
  EXPECT_THAT(said[1], AllOf(HasSubstr("greedy with 1.6 ms"), HasSubstr("fair with 2.2 ms")));
  EXPECT_THAT(said[2], AllOf(HasSubstr("fair with 10 ms"), HasSubstr("greedy with 2 s")));
  EXPECT_THAT(said[3], HasSubstr("lockbench hazards --strategies fair "));
}

TEST(Loads, WhatIsSupersededIsListedLastAndNeverRecommended) {
  Result result = minimal_result();
  add_strategy(result, "old", 0.001);
  add_strategy(result, "new", 0.01);
  const KnownFlaws flaws{{"old", {"late-release", "new"}}, {"new", {"pause-holding"}}};
  for (const Block& one : load_tables(result, flaws)) {
    EXPECT_EQ(one.table.rows.at(0).at(0).text, "new");
    EXPECT_EQ(one.table.rows.at(1).at(0).text, "old (old)");
  }
  const auto said = conclusions(result, flaws);
  ASSERT_THAT(said, SizeIs(4));
  for (const std::string& one : said)
    EXPECT_THAT(one, AllOf(HasSubstr("new"), Not(HasSubstr("old"))));
}

TEST(Loads, AControlWithoutALockIsNoLockToChoose) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01);
  add_strategy(result, "control", 0.001);
  for (auto& run : result.runs) {
    run.backend = "redis";
    if (run.strategy != "control") continue;
    run.audit.verdict = Verdict::counted;
    run.attempts_per_grant = 3;
  }
  const auto said = conclusions(result, {});
  ASSERT_THAT(said, SizeIs(5));
  EXPECT_EQ(said[1], "No lock and no lost update: the updates of control (3 attempts for each).");
  for (const std::size_t other : {0U, 2U, 3U, 4U}) {
    EXPECT_THAT(said[other], Not(HasSubstr("control")));
  }
}

TEST(Loads, ThoseWhoShareAPlaceAreSaidWithTheirRange) {
  Result result = minimal_result();
  add_strategy(result, "fair", 0.01);
  add_strategy(result, "near", 0.011);
  add_strategy(result, "greedy", 2);
  EXPECT_THAT(conclusions(result, {})[2],
              HasSubstr("fair and near with 10 ms to 11 ms; least fair"));
  EXPECT_THAT(conclusions(result, {})[1], HasSubstr("with 2.2 ms.")) << "it is the same of all";
}

TEST(Loads, WhatKeepsItsLockForLongIsNotFairHoweverLowItsPercentiles) {
  Result result = minimal_result();
  add_strategy(result, "fair", 0.02);
  add_strategy(result, "greedy", 0.001);
  run_of(result, "greedy", saturated).fairness.longest_wait_seconds = 3;
  EXPECT_THAT(conclusions(result, {})[2],
              HasSubstr("fair with 20 ms; least fair: greedy with 3 s"));
}

TEST(Loads, InvalidRunsCountOnlyWhereThereAreNoOthers) {
  Result result = minimal_result();
  const auto p99 = [&] {
    return median_figure(counting_of(strategy_loads(result)[0].runs_at("demand", 0)), "acquire.p99")
        ->value;
  };
  const auto served = [&] {
    return served_share(counting_of(strategy_loads(result)[0].runs_at("demand", 1)));
  };
  add_strategy(result, "a", 9);
  for (results::Run& run : result.runs) {
    run.generator.valid = false;
    run.outcomes.timed_out = run.outcomes.acquired;
  }
  EXPECT_EQ(p99(), 9);
  EXPECT_EQ(served(), 0.5);
  EXPECT_THAT(tiers_under(result, "demand"), ElementsAre(Pair("a", 0))) << "but they rank nothing";
  EXPECT_THAT(*render(result, {}, {}), HasSubstr("0 of 1 valid"));
  add_strategy(result, "a", 0.01);
  EXPECT_EQ(p99(), 0.01);
  EXPECT_EQ(served(), 1);
  EXPECT_THAT(tiers_under(result, "demand"), ElementsAre(Pair("a", 1)));
  EXPECT_THAT(*render(result, {}, {}), HasSubstr("1 of 2 valid"));
}

TEST(Loads, ARunThatWasCutShortIsNoRepetition) {
  Result result = minimal_result();
  add_strategy(result, "a", 9);
  for (results::Run& run : result.runs) run.interrupted = true;
  const auto p99 = [&] {
    return median_figure(counting_of(strategy_loads(result)[0].runs_at("demand", 0)), "acquire.p99")
        ->value;
  };
  EXPECT_EQ(p99(), 9) << "there is no other";
  EXPECT_THAT(tiers_under(result, "demand"), ElementsAre(Pair("a", 0)));
  add_strategy(result, "a", 0.01);
  EXPECT_EQ(p99(), 0.01);
  EXPECT_THAT(*render(result, {}, {}), HasSubstr("1 of 2 valid"));
}

TEST(Loads, ThatTheMachineIsBusyIsSaidAfterTheFirstRuns) {
  std::vector<results::Run> runs(2);
  for (results::Run& run : runs) {
    run.generator.valid = false;
    run.generator.reasons = {"other programs used 40 % of the machine's CPU"};
  }
  EXPECT_EQ(disturbed_from_the_start(runs), "");
  runs.push_back(runs.back());
  EXPECT_THAT(disturbed_from_the_start(runs),
              HasSubstr("the first 3 runs are invalid: other programs used 40 %"));
  runs.front().generator = {};
  EXPECT_EQ(disturbed_from_the_start(runs), "");
}

TEST(Loads, WithoutEnoughContentionNothingIsCalledSafe) {
  Result result = minimal_result();
  add_strategy(result, "a", 0.01, Verdict::untested);
  EXPECT_THAT(conclusions(result, {})[0], HasSubstr("no strategy was tested enough"));
}

TEST(Loads, AMedianIsABoundIfWhatWasCutOffCouldChangeIt) {
  Result result = minimal_result();
  for (const double worst : {0.010, 0.011, 0.020}) add_strategy(result, "a", worst);
  const auto p99 = [&](std::size_t cut_off) {
    const StrategyLoads a = strategy_loads(result).front();
    const auto runs = a.runs_of("saturated");
    results::Run cut = *runs.at(cut_off);
    cut.acquire.at_least = {"p99"};
    std::vector<const results::Run*> some{&cut};
    for (const results::Run* run : runs) {
      if (run != runs.at(cut_off)) some.push_back(run);
    }
    return median_figure(some, "acquire.p99").value();
  };
  EXPECT_EQ(p99(0).value, 0.011);
  EXPECT_TRUE(p99(0).at_least);
  EXPECT_TRUE(p99(1).at_least);
  EXPECT_FALSE(p99(2).at_least) << "it was above the median already";
}

}  // namespace
}  // namespace lockbench::results
