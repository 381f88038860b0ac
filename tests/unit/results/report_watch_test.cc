#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "results/report/limits.h"
#include "tests/unit/results/report_fixture.h"
#include "tests/unit/results/samples.h"

namespace lockbench::results::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result watched() {
  Result result = minimal_result();
  Observed& family = result.observed.emplace().emplace_back();
  family.store = "redis";
  family.family = "order";
  family.accuracy = "at_least";
  family.locks = 3;
  family.acquisitions = 12;
  family.releases = 10;
  family.expired_while_held = 1;
  result.locks = {{.store = "redis",
                   .endpoint = "127.0.0.1:6379",
                   .family = "order",
                   .lock = "lock:order:7",
                   .shape = "token",
                   .expired_while_held = 1,
                   .history = {{.t = 1, .what = "granted", .holder = "aa", .waiting = 0},
                               {.t = 2, .what = "queue_changed", .holder = "", .waiting = 1},
                               {.t = 3, .what = "expired", .holder = "aa", .waiting = 1}}}};
  result.findings = {{.kind = "expired",
                      .store = "redis",
                      .family = "order",
                      .lock = "lock:order:7",
                      .times = 1,
                      .evidence = "1 of 11 expired",
                      .advice = "renew the lock"}};
  result.sources = {{.store = "redis",
                     .endpoint = "127.0.0.1:6379",
                     .way = "CLIENT TRACKING",
                     .accuracy = "at_least",
                     .unseen = {"attempts that were refused"}}};
  return result;
}

const Line& line_named(const LineChart& chart, const std::string& name) {
  return *std::find_if(chart.lines.begin(), chart.lines.end(),
                       [&](const Line& line) { return line.name == name; });
}

TEST(ReportWatch, TellsFirstWhatWasFound) {
  const Part part = part_of(watched());
  EXPECT_THAT(part.headline, says(Tone::plain, "at least 12 acquisitions; 3 locks in 1 family"));
  EXPECT_THAT(part.headline, says(Tone::bad, "lock:order:7"));
  EXPECT_THAT(part.headline, says(Tone::bad, "What to do: renew the lock."));
}

TEST(ReportWatch, EachFindingStandsOnThePageOnce) {
  Result result = watched();
  result.findings.clear();
  for (const char* lock : {"a", "b", "c", "d", "e"}) {
    result.findings.push_back({.kind = "no_ttl", .lock = std::string("lock:") + lock});
  }
  const Part part = part_of(result);
  EXPECT_THAT(part.headline, says(Tone::bad, "lock:d"));
  EXPECT_THAT(part.headline, testing::Not(says(Tone::bad, "lock:e")));
  const auto* const said = std::get_if<Remarks>(&part.sections.front().blocks.front());
  ASSERT_TRUE(said);
  ASSERT_EQ(said->size(), 1U);
  EXPECT_THAT(said->front().text, HasSubstr("lock:e"));
}

TEST(ReportWatch, ShowsFamiliesLocksAndServers) {
  const Part part = part_of(watched());
  const auto* const families = find_block<Table>(part, "Families of locks");
  ASSERT_TRUE(families);
  EXPECT_EQ(families->rows.size(), 1U);
  const auto* const locks = find_block<Table>(part, "The locks that hurt most");
  ASSERT_TRUE(locks);
  EXPECT_EQ(locks->rows.front().front().text, "lock:order:7");
  EXPECT_EQ(locks->rows.front().size(), locks->titles.size());
  const auto* const servers = find_block<Table>(part, "How it was seen");
  ASSERT_TRUE(servers);
  EXPECT_EQ(servers->rows.front().size(), servers->titles.size());
}

TEST(ReportWatch, DrawsWhoHeldAndWaited) {
  const Part part = part_of(watched());
  const auto* const chart = find_block<LineChart>(part, "Holders and waiters of lock:order:7");
  ASSERT_TRUE(chart);
  EXPECT_THAT(line_named(*chart, "holders").points,
              ElementsAre(Pair(1, 0), Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(3, 0)));
  EXPECT_THAT(line_named(*chart, "waiters").points,
              ElementsAre(Pair(1, 0), Pair(2, 0), Pair(2, 1), Pair(3, 1)));
  ASSERT_EQ(chart->marks.size(), 1U);
  EXPECT_EQ(chart->marks.front().label, "expired");
  EXPECT_EQ(chart->table.rows.size(), 3U);
}

TEST(ReportWatch, ALockThatWasHeldBeforeItsHistoryHadAHolder) {
  Result result = watched();
  auto& history = result.locks.front().history;
  history.erase(history.begin());
  const Part part = part_of(result);
  const auto* const chart = find_block<LineChart>(part, "Holders and waiters of lock:order:7");
  ASSERT_TRUE(chart);
  EXPECT_THAT(line_named(*chart, "holders").points,
              ElementsAre(Pair(2, 1), Pair(3, 1), Pair(3, 0)));
}

TEST(ReportWatch, ALongHistoryIsBounded) {
  Result result = watched();
  auto& history = result.locks.front().history;
  for (int i = 0; i < 1000; ++i) {
    history.push_back({.t = 4.0 + i, .what = i % 2 == 0 ? "granted" : "released", .holder = "bb"});
  }
  const Part part = part_of(result);
  const auto* const chart = find_block<LineChart>(part, "Holders and waiters of lock:order:7");
  ASSERT_TRUE(chart);
  for (const Line& line : chart->lines) EXPECT_LE(line.points.size(), kMostPoints);
  EXPECT_EQ(line_named(*chart, "holders").points.back().first, 1003) << "the latest are kept";
}

TEST(ReportWatch, SaysThatNothingWasFoundOrSeen) {
  Result quiet = watched();
  quiet.findings.clear();
  EXPECT_THAT(part_of(quiet).headline, says(Tone::good, "Nothing was found"));
  Result empty = minimal_result();
  empty.observed.emplace();
  EXPECT_THAT(part_of(empty).headline, says(Tone::doubtful, "saw no lock"));
  EXPECT_THAT(part_of(empty).headline, testing::Not(says(Tone::good, "Nothing was found")));
}

}  // namespace
}  // namespace lockbench::results::report
