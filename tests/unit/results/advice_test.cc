#include <gmock/gmock.h>

#include <limits>

#include "results/tables/formats.h"
#include "results/tables/runs.h"
#include "results/tables/show.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto says(Tone tone, const std::string& text) {
  return AllOf(Field(&Sentence::tone, tone), Field(&Sentence::text, HasSubstr(text)));
}

TEST(Advice, SaysFirstWhatBrokeInAnyRepetition) {
  Result result = minimal_result();
  result.runs = {simple_run("good"), simple_run("bad"), simple_run("bad")};
  for (std::size_t i : {1U, 2U}) {
    result.runs[i].audit = {.lost_updates = 6, .overlaps = 3, .verdict = Verdict::violated};
  }
  EXPECT_THAT(advice(result, {}),
              ElementsAre(says(Tone::bad,
                               "violated exclusion: bad: lost updates 12, overlaps of "
                               "two holders 6")));
  result.runs.resize(1);
  EXPECT_THAT(advice(result, {}), IsEmpty());
}

TEST(Advice, SaysFirstThatALockIsFullAtTheRateAskedFor) {
  Result result = minimal_result();
  result.runs = {simple_run("busy"), simple_run("free"), simple_run("slow")};
  for (auto& run : result.runs) run.load.rate = 100;
  result.runs[0].lock_taken = 0.99;
  result.runs[1].lock_taken = 0.7;
  result.runs[2].outcomes = {.acquired = 90, .timed_out = 10};
  result.runs[2].audit.verdict = Verdict::violated;
  EXPECT_THAT(advice(result, {}).at(0), says(Tone::bad, "full: busy and slow: no time"));
  result.runs[0].generator.valid = false;
  EXPECT_THAT(advice(result, {}).at(0), says(Tone::bad, "full: slow: no time"));
  for (auto& run : result.runs) run.load.rate.reset();
  EXPECT_THAT(advice(result, {}).at(0), says(Tone::bad, "violated")) << "closed loops fill it";
}

TEST(Advice, TellsWhatAWatchFoundAndWhatToDo) {
  Result result = minimal_result();
  result.observed.emplace();
  result.findings = {{.kind = "expired",
                      .store = "redis",
                      .family = "order",
                      .evidence = "1 of 11",
                      .advice = "renew the lock"},
                     {.kind = "hog", .store = "redis", .evidence = "one client"}};
  result.sources = {{.store = "redis", .endpoint = "host:1", .unseen = {"refused attempts"}}};
  EXPECT_THAT(advice(result, {}),
              ElementsAre(says(Tone::bad, "expired: redis order: 1 of 11: renew the lock"),
                          says(Tone::doubtful, "hog: redis: one client"),
                          says(Tone::plain, "redis host:1: cannot see refused attempts")));
}

TEST(Notes, SayWhenAFaultStruckAndWhatItDid) {
  struct Case {
    FaultMark mark;
    Tone tone;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{"store-kill", 2.5, 3.5, 0.12, 0.014},
       Tone::plain,
       "store-kill at 2.5 s, healed at 3.5 s: throughput fell to 1 % and recovered 120 ms after "
       "healing"},
      {{"node-kill", 1, std::nullopt, 0.05, 0.6},
       Tone::plain,
       "node-kill at 1 s: throughput fell to 60 % and recovered 50 ms after the fault"},
      {{"failover", 1, 1.5, std::nullopt, 0},
       Tone::bad,
       "failover at 1 s, healed at 1.5 s: throughput fell to 0 % and did not recover before the "
       "run ended"},
      {{"delay:5ms", 0, std::nullopt, std::nullopt, std::numeric_limits<double>::quiet_NaN()},
       Tone::plain,
       "delay:5ms at 0 s: too few grants before it to compare with"}};
  Result result = minimal_result();
  result.runs = {simple_run("redis-set-nx")};
  for (const auto& [mark, tone, said] : cases) {
    result.runs[0].faults = {mark};
    EXPECT_THAT(notes(result), ElementsAre(says(tone, "fault: redis-set-nx: " + said)));
  }
}

TEST(Notes, TellOfALockThatNobodyGot) {
  Result result;
  result.runs = {results::Run{.strategy = "redis-wait"}, results::Run{.strategy = "redis-set-nx"},
                 results::Run{.strategy = "redlock"}};
  result.runs[0].outcomes = {.refused = 9, .abandoned = 7};
  result.runs[0].fairness.per_client.resize(7);
  result.runs[1].outcomes = {.acquired = 1, .refused = 9};
  // Its only grant came after the measured window, which was shorter than an acquisition.
  result.runs[2].outcomes = {.abandoned = 1};
  result.runs[2].acquire.count = 1;
  EXPECT_THAT(notes(result), ElementsAre(says(Tone::doubtful,
                                              "nothing granted: redis-wait: 9 refused, 0 timed "
                                              "out, 0 failed, 0 unknown, 7 abandoned")));
}

std::string node_cost(const Cost& cost) {
  Result result = sample_quorum();
  result.runs[0].costs->node_seconds = cost;
  return experiment_findings(result).at(0);
}

TEST(QuorumFindings, ANodesCostHasAnIntervalAndIsNoneIfThatHoldsZeroOrIsAGain) {
  EXPECT_EQ(node_cost({41e-6, Interval{38e-6, 44e-6}}),
            "each further node costs redlock, 1 client: 41 µs of acquire p50 (95 %: 38 µs to 44 "
            "µs), 2 commands a section");
  EXPECT_EQ(node_cost({-5e-6, Interval{-11e-6, 1.2e-6}}),
            "each further node costs redlock, 1 client: none that can be shown (at most 1.2 µs of "
            "acquire p50), 2 commands a section");
  EXPECT_EQ(node_cost({-5e-6, Interval{-6e-6, -4e-6}}),
            "each further node costs redlock, 1 client: none, but −5 µs of acquire p50 (95 %: −6 "
            "µs to −4 µs), 2 commands a section");
}

TEST(QuorumFindings, AreThoseOfTheLargestQuorum) {
  Result result = sample_quorum();
  auto larger = result.runs[0];
  larger.load.nodes->count = 7;
  larger.costs->node_seconds = Cost{50e-6};
  auto contended = larger;
  contended.load.clients = 8;
  result.runs = {result.runs[0], larger, result.runs[0], contended};
  EXPECT_THAT(experiment_findings(result),
              ElementsAre(HasSubstr("redlock, 1 client: 50 µs of acquire p50 (no interval)"),
                          HasSubstr("redlock, 8 clients: 50 µs")));
}

struct Shown {
  std::string cost, finding;
};

Shown renewal_that_cost(Cost cost) {
  Result result = sample_renewal();
  result.runs[1].costs->throughput = cost;
  const auto found = experiment_findings(result);
  EXPECT_EQ(found.size(), 1U);
  const Table table = *chosen(run_table(result, {}), {"held_locks", "throughput_cost"});
  EXPECT_THAT(texts_of(table.rows.at(0)), ElementsAre("0", "–"));
  EXPECT_EQ(texts_of(table.rows.at(1)).front(), "10k");
  return {texts_of(table.rows[1]).back(), found.at(0)};
}

TEST(RenewalFindings, ACostHasAnIntervalAndNoiseIsNone) {
  const Shown some = renewal_that_cost({0.04, Interval{0.012, 0.068}});
  EXPECT_THAT(some.finding,
              HasSubstr("10k locks renewed: cost to the other clients 4.0 % of their throughput "
                        "(95 %: 1.2 % to 6.8 %), smallest margin "));
  EXPECT_EQ(some.cost, "4.0 % ± 2.8 %");
  const Shown none = renewal_that_cost({0.018, Interval{-0.01, 0.046}});
  EXPECT_THAT(none.finding,
              HasSubstr("none that can be shown (at most 4.6 % of their throughput)"));
  EXPECT_EQ(none.cost, "none shown");
  EXPECT_THAT(renewal_that_cost({0.04}).finding,
              HasSubstr("4.0 % of their throughput (no interval)"));
  EXPECT_THAT(renewal_that_cost({-0.04}).finding, HasSubstr("none that can be shown, smallest "));
  EXPECT_THAT(experiment_findings(full_result()), IsEmpty());
}

TEST(CapacityFindings, SayWhatStepsMetWhereTheTimeDecidedNothing) {
  Capacity capacity{.strategy = "a",
                    .objective = "acquire.p99<2s",
                    .highest = std::numeric_limits<double>::quiet_NaN(),
                    .ceiling = 3.3,
                    .planned_rate = 1,
                    .rates = {{.rate = 1, .decision = "open", .samples = 6, .steps = 1},
                              {.rate = 2.2,
                               .decision = "open",
                               .samples = 40,
                               .steps = 3,
                               .reason = "another 960 take 7 min"},
                              {.rate = 2.9, .decision = "open", .steps = 1, .missed_steps = 1}}};
  const auto said = findings(capacity);
  EXPECT_THAT(said[0], AllOf(HasSubstr("not shown to be kept at any rate, but met up to 2.2/s (40 "
                                       "samples, missed in 0 of 3 steps)"),
                             HasSubstr("the hold allows no more than 3.3/s")));
  EXPECT_THAT(said[1], HasSubstr("another 960 take 7 min"));
  EXPECT_EQ(said.back(), "planned 1/s: not decided, but met in 1 of 1 steps");
  capacity.planned_rate = 1.5;
  EXPECT_EQ(findings(capacity).back(), "planned 1.5/s: not decided, but a higher rate was met");
  EXPECT_THAT(*render(Result{.capacity = {{capacity}}}, {}, {}), HasSubstr("up to /s"));
  capacity.keys_needed = 4;
  EXPECT_THAT(findings(capacity).back(), HasSubstr("keys: 1.5/s need at least 4"));
}

TEST(ExperimentTable, IsOneOfRunsWithWhatVaries) {
  const std::string text = *render(sample_renewal(), {}, {.format = Format::markdown});
  EXPECT_THAT(text, AllOf(HasSubstr("| load |"), HasSubstr("| 10k locks held |")));
  EXPECT_THAT(text, HasSubstr("10k locks renewed: "));
  EXPECT_THAT(text, testing::Not(HasSubstr("saturated: who is served")));
  Result quorum = sample_quorum();
  quorum.runs.push_back(quorum.runs[0]);
  quorum.runs[1].load.nodes = {.count = 5, .down = 1, .slow = 2, .slow_seconds = 0.02};
  EXPECT_THAT(*render(quorum, {}, {.format = Format::markdown}),
              AllOf(HasSubstr("| 5 nodes, 1 client |"),
                    HasSubstr("| 5 nodes, 1 down, 2 slow by 20 ms, 1 client |")));
  EXPECT_THAT(*render(quorum, {},
                      {.format = Format::csv,
                       .columns = {"nodes", "nodes_down", "nodes_slow", "slow_seconds", "clients",
                                   "node_cost_seconds"}}),
              HasSubstr("\r\n5,1,2,0.02,1,4e-05\r\n"));
}

}  // namespace
}  // namespace lockbench::results
