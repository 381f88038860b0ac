#include "watch/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "watch/findings.h"

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;

Picture sample_picture() {
  Picture picture;
  picture.at = TimePoint(1060s);
  picture.watched = 60s;
  picture.sources = {{.facts = {.store = "redis",
                                .endpoint = "127.0.0.1:1",
                                .way = "CLIENT TRACKING",
                                .accuracy = Accuracy::at_least,
                                .unseen = {"attempts that were refused"}},
                      .blind_seconds = 2,
                      .missed = 7,
                      .commands = 99},
                     {.facts = {.store = "etcd", .endpoint = "127.0.0.1:2"}, .missed = 1000}};
  FamilyPicture family{.store = "redis", .family = "order", .locks = 3};
  family.figures.acquisitions = 12;
  family.figures.expired_while_held = 2;
  family.figures.without_ttl = 3;
  family.figures.without_ttl_now = 1;
  family.figures.accuracy = Accuracy::at_least;
  family.figures.smallest_margin = 250ms;
  family.figures.hold.record(20ms);
  family.figures.hold.record(40ms);
  picture.families = {family};
  LockPicture lock{.name = "order:1", .store = "redis", .family = "order", .shape = Shape::token};
  lock.holder = "0123456789";
  lock.figures.oldest_hold = 3s;
  lock.history = {{TimePoint(1005s), Moment::Kind::granted, "0123456789", 2}};
  picture.worst = {lock};
  picture.findings = findings_of(picture);
  return picture;
}

results::Result result_of(const Picture& picture) {
  results::Result result;
  add_to(result, picture);
  return result;
}

TEST(Record, AFamilyKeepsItsFigures) {
  const results::Result result = result_of(sample_picture());
  ASSERT_TRUE(result.observed);
  ASSERT_EQ(result.observed->size(), 1U);
  const results::Observed& family = result.observed->front();
  EXPECT_EQ(family.store, "redis");
  EXPECT_EQ(family.family, "order");
  EXPECT_EQ(family.source, "CLIENT TRACKING");
  EXPECT_EQ(family.accuracy, "at_least");
  EXPECT_EQ(family.acquisitions, 12U);
  EXPECT_EQ(family.expired_while_held, 2U);
  EXPECT_EQ(family.no_ttl, 4U) << "those held now are leaks as well";
  EXPECT_EQ(family.hold.count, 2U);
  EXPECT_NEAR(family.hold.mean, 0.030, 0.001);
  EXPECT_EQ(family.margin_min, 0.25);
  EXPECT_EQ(family.missed, 7U) << "of its own store only";
}

TEST(Record, WaitsThatTheStoreDoesNotTellAreNull) {
  Picture picture = sample_picture();
  EXPECT_FALSE(result_of(picture).observed->front().wait);
  EXPECT_FALSE(result_of(picture).observed->front().waiting_now);
  picture.families.front().figures.waits_known = true;
  picture.families.front().figures.waiting_now = 5;
  EXPECT_TRUE(result_of(picture).observed->front().wait);
  EXPECT_EQ(result_of(picture).observed->front().waiting_now, 5U);
}

TEST(Record, ALocksHistoryCountsFromTheBeginningOfTheWatch) {
  const results::Result result = result_of(sample_picture());
  ASSERT_EQ(result.locks.size(), 1U);
  EXPECT_EQ(result.locks.front().lock, "order:1");
  EXPECT_EQ(result.locks.front().held_seconds, 3);
  ASSERT_EQ(result.locks.front().history.size(), 1U);
  EXPECT_EQ(result.locks.front().history.front().t, 5);
  EXPECT_EQ(result.locks.front().history.front().what, "granted");
  EXPECT_EQ(result.locks.front().history.front().waiting, 2U);
}

TEST(Record, EachFindingAndEachServerIsThere) {
  const Picture picture = sample_picture();
  const results::Result result = result_of(picture);
  ASSERT_EQ(result.findings.size(), picture.findings.size());
  std::set<std::string> kinds;
  for (const auto& finding : result.findings) kinds.insert(finding.kind);
  EXPECT_THAT(kinds, testing::UnorderedElementsAre("expired", "no_ttl", "blind"));
  ASSERT_EQ(result.sources.size(), 2U);
  EXPECT_EQ(result.sources.front().commands, 99U);
  EXPECT_EQ(result.sources.front().blind_seconds, 2);
  EXPECT_EQ(result.sources.front().watched_seconds, 60);
}

TEST(Record, AWatchThatSawNothingIsNoEmptyRun) {
  const results::Result result = result_of(Picture());
  ASSERT_TRUE(result.observed);
  EXPECT_TRUE(result.observed->empty());
}

}  // namespace
}  // namespace lockbench::watch
