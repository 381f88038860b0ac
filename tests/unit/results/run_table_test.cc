#include <gmock/gmock.h>

#include <algorithm>

#include "results/tables/show.h"
#include "results/tables/text.h"
#include "tests/unit/results/samples.h"
#include "tests/unit/results/table_lines.h"

namespace lockbench::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

std::string plain(const Result& result, const KnownFlaws& flaws = {}) {
  return *render(result, flaws, {});
}

std::string colored(const Result& result) {
  return *render(result, {}, {.style = {.color = true}});
}

std::string at_width(const Result& result, const KnownFlaws& flaws, std::size_t width) {
  return *render(result, flaws, {.style = {.width = width}});
}

TEST(Table, ShowsEachStrategysFiguresInHumanUnits) {
  const std::string text = plain(full_result(), {{"redis-set-nx", {"long pause"}}});
  EXPECT_THAT(line_with(text, "long pause"),
              AllOf(HasSubstr("redis-set-nx"), HasSubstr("41.2k"), HasSubstr("83 µs"),
                    HasSubstr("1.42 ms"), HasSubstr("12.3 s"), HasSubstr("2.25"), HasSubstr("0.99"),
                    HasSubstr("12–15"), HasSubstr("violated"), HasSubstr("invalid")));
  EXPECT_THAT(text, AllOf(HasSubstr("timed out"), HasSubstr("failed"), HasSubstr("falls to")));
}

TEST(Table, WhatNeverHappenedHasNoColumn) {
  const std::vector<std::string> titles = {
      "trips",   "backoff", "notified", "grant",   "rejected",  "leases",  "renewals",
      "rounds/", "split",   "validity", "replica", "timed out", "handoff", "all locks",
      "aborts",  "shared",  "invalid",  "echo",    "pool"};
  Result result = minimal_result();
  result.runs = {run_at(100, 1)};
  for (const std::string& title : titles) EXPECT_THAT(plain(result), Not(HasSubstr(title)));
  result.runs.push_back(full_run());
  result.runs[1].load = result.runs[0].load;
  for (const std::string& title : titles) EXPECT_THAT(plain(result), HasSubstr(title));
  EXPECT_THAT(
      line_with(plain(result), "redis-set-nx"),
      AllOf(HasSubstr("100 µs"), HasSubstr("100 ms"), HasSubstr("2 ms"), HasSubstr(" 30 ")));
  EXPECT_THAT(line_with(plain(result), "redlock"), HasSubstr("–")) << "nothing renews there";
}

TEST(Table, RepetitionsShareARow) {
  Result result = minimal_result();
  result.runs = {run_at(100, 1), run_at(110, 2), run_at(130, 3)};
  result.runs[1].audit.lost_updates = result.runs[1].audit.lost_updates_max = 2;
  result.runs[2].audit.lost_updates = result.runs[2].audit.lost_updates_max = 5;
  result.runs[1].audit.verdict = Verdict::violated;
  result.runs[2].audit.verdict = Verdict::unprotected;
  result.runs[2].fairness.longest_wait_seconds = 50;
  const std::string text = plain(result);
  EXPECT_THAT(line_with(text, "redlock"), AllOf(HasSubstr("110 ±18%"), HasSubstr(" 7 "),
                                                HasSubstr("violated"), HasSubstr("50 s")));
  EXPECT_THAT(text, HasSubstr("medians"));
}

TEST(Table, ARangeFromNothingIsDoubtfulAndLostUpdatesAreRed) {
  Result result = minimal_result();
  result.runs = {run_at(100, 1)};
  result.runs[0].audit.lost_updates_max = 3;
  const std::string doubtful = colored(result);
  EXPECT_THAT(doubtful, HasSubstr("\x1b[33m0–3\x1b[0m"));
  EXPECT_THAT(doubtful, HasSubstr("\x1b[32mexclusive\x1b[0m"));
  result.runs[0].audit.lost_updates = 3;
  result.runs[0].audit.verdict = Verdict::violated;
  const std::string lost = colored(result);
  EXPECT_THAT(lost, HasSubstr("\x1b[31m3\x1b[0m"));
  EXPECT_THAT(lost, HasSubstr("\x1b[31mviolated\x1b[0m"));
  result.runs[0].audit.verdict = Verdict::unprotected;
  EXPECT_THAT(colored(result), HasSubstr("\x1b[33munprotected\x1b[0m"));
  result.runs[0].audit.verdict = Verdict::unaudited;
  EXPECT_THAT(colored(result), HasSubstr("\x1b[33munaudited\x1b[0m"));
  EXPECT_THAT(plain(result), Not(HasSubstr("\x1b")));
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  Result result = full_result();
  result.runs[0].generator.reasons = {
      "a reason of many words that is longer than a narrow terminal"};
  const KnownFlaws flaws{{"redis-set-nx", {"a long pause of its holder"}}};
  const std::size_t all = display_width(lines_of(plain(result, flaws)).at(1));
  for (std::size_t width = 30; width <= all + 10; width += 7) {
    const std::string text = at_width(result, flaws, width);
    for (const std::string& line : lines_of(text)) {
      EXPECT_LE(display_width(line), width) << text;
    }
    EXPECT_THAT(text, HasSubstr("redis-set-nx"));
  }
}

std::string unfolded(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) {
    text.replace(at, 3, " ");
  }
  return text;
}

TEST(Table, TheLeastImportantGoesFirstAndIsNamedWithItsCounts) {
  Result result = full_result();
  result.runs[1].outcomes.timed_out = 10;
  result.runs[1].audit.overlaps = 4;
  const KnownFlaws flaws{{"none", {"contention"}}};
  const std::string text = unfolded(at_width(result, flaws, 13));
  EXPECT_THAT(text,
              AllOf(HasSubstr("--columns all shows them): shared p99, exclusive p99, "
                              "deadlocks (redis-set-nx 6), aborts (redis-set-nx 14), "),
                    HasSubstr("timed out (redis-set-nx 12, none 10), "),
                    HasSubstr("lost updates (redis-set-nx 12–15), sections /s, worst client p99, "
                              "longest wait\n")));
  EXPECT_THAT(plain(result, flaws), Not(HasSubstr("left out")));
}

TEST(Table, WhereNothingWasAuditedNothingIsClaimed) {
  Result result = minimal_result();
  result.runs = {run_at(100, 1)};
  EXPECT_THAT(line_with(plain(result), "redlock"), Not(HasSubstr("–")));
  result.runs[0].audit.increments = 0;
  const std::string row = line_with(plain(result), "redlock");
  EXPECT_NE(row.find("–"), row.rfind("–")) << "lost updates and fairness: " << row;
  // An audited repetition determines the verdict.
  result.runs.push_back(run_at(100, 2));
  result.runs[1].audit.lost_updates = result.runs[1].audit.lost_updates_max = 7;
  EXPECT_THAT(line_with(plain(result), "redlock"), AllOf(HasSubstr(" 7 "), Not(HasSubstr("–"))));
}

TEST(Table, SaysWhatElseThereIsToSay) {
  Result result = full_result();
  result.skipped = {{"etcd", "no server"}, {"chubby", "no server"}, {"redis-wait", "no replicas"}};
  const std::string text = plain(result);
  EXPECT_THAT(text, HasSubstr("interrupted"));
  EXPECT_THAT(text, HasSubstr("invalid: redis-set-nx, repetition 2: the generator used 95 %"));
  EXPECT_THAT(text, HasSubstr("failure: redis-set-nx, repetition 2: connection refused"));
  EXPECT_THAT(text, HasSubstr("skipped: etcd, chubby: no server\n"));
  EXPECT_THAT(text, HasSubstr("skipped: redis-wait: no replicas\n"));
}

TEST(Table, FiguresAreThoseOfTheValidRepetitions) {
  Result result = minimal_result();
  for (int repetition = 1; repetition <= 5; ++repetition) {
    result.runs.push_back(run_at(repetition < 3 ? 100 : 10, repetition));
    result.runs.back().generator.valid = repetition < 3;
  }
  result.runs.back().audit.lost_updates = result.runs.back().audit.lost_updates_max = 7;
  const std::string row = line_with(plain(result), "redlock");
  EXPECT_THAT(row, AllOf(HasSubstr("100 ±0%"), HasSubstr("2 of 5 valid")));
  EXPECT_THAT(row, HasSubstr(" 7 ")) << "a violation counts on any machine";
}

TEST(Table, ARunThatWasCutShortIsMarkedAndShownIfThereIsNoOther) {
  Result result = minimal_result();
  result.runs = {run_at(10, 1)};
  result.runs[0].interrupted = true;
  EXPECT_THAT(line_with(plain(result), "redlock"), AllOf(HasSubstr("10"), HasSubstr("cut short")));
  result.runs.insert(result.runs.begin(), run_at(100, 1));
  result.runs[1].repetition = 2;
  EXPECT_THAT(line_with(plain(result), "redlock"),
              AllOf(HasSubstr("100 "), HasSubstr("1 of 2 valid")));
}

TEST(Table, AP99OfFewWaitsIsCalledTheLongest) {
  Result result = minimal_result();
  result.runs = {run_at(100, 1)};
  results::Fairness& fairness = result.runs[0].fairness;
  fairness.by_client = ByClient{.worst_p99 = 0.064};
  EXPECT_THAT(line_with(plain(result), "redlock"), Not(HasSubstr("max 64 ms")));
  fairness.by_client->worst_is_longest = true;
  EXPECT_THAT(line_with(plain(result), "redlock"), HasSubstr("max 64 ms"));
}

TEST(Table, AFaultIsToldInTheTimeOfItsOptionAndAsAFindingOnlyOfAValidRun) {
  Result result = minimal_result();
  result.runs = {run_at(100, 1)};
  results::Run& run = result.runs[0];
  run.warmup_seconds = 0.5;
  run.faults = {{.fault = "store-kill",
                 .at_seconds = 1.5,
                 .healed_seconds = 2.0,
                 .recovery_seconds = 571e-9,
                 .lowest_share = 0.5}};
  EXPECT_THAT(plain(result), HasSubstr("store-kill at 1 s, healed at 1.5 s: throughput fell to 50 %"
                                       " and recovered within 10 ms of healing"));
  run.faults[0].recovery_seconds.reset();
  const auto tone = [&] {
    for (const Sentence& line : notes(result)) {
      if (line.text.starts_with("fault: ")) return line.tone;
    }
    return Tone::good;
  };
  EXPECT_EQ(tone(), Tone::bad);
  run.generator.valid = false;
  EXPECT_EQ(tone(), Tone::doubtful);
  EXPECT_THAT(plain(result), HasSubstr("(the run is invalid)"));
}

TEST(Table, IsAsciiWithoutUtf8) {
  Result result = full_result();
  result.runs.push_back(run_at(100, 1));
  result.runs.push_back(run_at(110, 2));
  for (auto& run : result.runs) run.load = {};
  const std::string text = *render(result, {}, {.style = {.ascii = true}});
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c > 0; })) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("83 us"), HasSubstr("12-15"), HasSubstr("+-5%")));
}

}  // namespace
}  // namespace lockbench::results
