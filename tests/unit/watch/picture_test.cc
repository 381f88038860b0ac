#include "watch/picture.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <tuple>

namespace lockbench::watch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A family without findings.
Picture healthy() {
  Picture picture;
  picture.sources = {{.facts = {.store = "redis", .endpoint = "127.0.0.1:1", .way = "script"}}};
  FamilyPicture family;
  family.store = "redis";
  family.family = "order";
  family.acquisitions = family.releases = 1000;
  family.owners = 10;
  family.largest_share = 0.1;
  family.sight = Accuracy::exact;
  family.queue = {2, 1, 2, 3, 3};
  picture.families = {family};
  return picture;
}

std::vector<std::string> kinds_of(const Picture& picture) {
  std::vector<std::string> kinds;
  for (const Finding& finding : findings_of(picture)) kinds.push_back(finding.kind);
  return kinds;
}

Finding only_finding(const Picture& picture) {
  const std::vector<Finding> findings = findings_of(picture);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

struct Case {
  std::string kind;
  std::function<void(Picture&)> hurt;
};

FamilyPicture& family(Picture& picture) { return picture.families.front(); }

/// For each kind, a picture with that finding and no other.
std::vector<Case> cases() {
  return {
      {"stolen", [](Picture& picture) { family(picture).owner_changed = 1; }},
      {"taken_over", [](Picture& picture) { family(picture).taken_over = 1; }},
      {"expired", [](Picture& picture) { family(picture).expired_while_held = 1; }},
      {"dead_session", [](Picture& picture) { family(picture).session_lost = 1; }},
      {"thin_margin", [](Picture& picture) { family(picture).thin_margins = 1; }},
      {"thin_margin", [](Picture& picture) { family(picture).undecided = 1; }},
      {"renewal_stopped", [](Picture& picture) { family(picture).renewal_stopped_now = 1; }},
      {"held_long", [](Picture& picture) { family(picture).held_long_now = 1; }},
      {"no_ttl", [](Picture& picture) { family(picture).without_ttl = 1; }},
      {"no_ttl", [](Picture& picture) { family(picture).without_ttl_now = 1; }},
      {"convoy",
       [](Picture& picture) {
         family(picture).queue = {1, 3, 5, 7, 9};
       }},
      {"hog",
       [](Picture& picture) {
         family(picture).largest_share = 0.9;
         family(picture).most_waiting = 1;
       }},
      {"blind", [](Picture& picture) { picture.sources.front().sees = false; }},
      {"blind", [](Picture& picture) { picture.sources.front().blind_seconds = 3; }},
      {"missed", [](Picture& picture) { picture.sources.front().missed = 3; }},
      {"missed", [](Picture& picture) { picture.locks_unfollowed = 3; }},
      {"never_released", [](Picture& picture) { family(picture).lapsed = 3; }},
  };
}

TEST(Findings, AHealthyFamilyHasNone) { EXPECT_THAT(findings_of(healthy()), IsEmpty()); }

TEST(Findings, EachKindIsFoundAlone) {
  for (const Case& one : cases()) {
    Picture picture = healthy();
    one.hurt(picture);
    EXPECT_THAT(kinds_of(picture), testing::ElementsAre(one.kind)) << one.kind;
    for (const Finding& finding : findings_of(picture)) {
      EXPECT_THAT(finding.evidence, Not(IsEmpty())) << one.kind;
      EXPECT_THAT(finding.advice, Not(IsEmpty())) << one.kind;
      EXPECT_GE(finding.times, 1U) << one.kind;
    }
  }
}

TEST(Findings, WhatHurtsMostComesFirst) {
  Picture picture = healthy();
  family(picture).thin_margins = 100'000;
  family(picture).expired_while_held = 1;
  family(picture).owner_changed = 1;
  EXPECT_THAT(kinds_of(picture), testing::ElementsAre("stolen", "expired", "thin_margin"));
}

TEST(Findings, AQueueIsAConvoyOnlyIfItGrowsAndIsLong) {
  Picture picture = healthy();
  for (const auto& queue :
       std::vector<Lows::Parts>{{5, 5, 6, 6, 7}, {0, 0, 1, 1, 2}, {9, 8, 7, 6, 3}}) {
    family(picture).queue = queue;
    EXPECT_THAT(findings_of(picture), IsEmpty()) << queue.back();
  }
  family(picture).queue = {5, 10, 20, 30, 40};
  family(picture).acquired_meanwhile = 600;
  EXPECT_THAT(findings_of(picture), IsEmpty()) << "600 grants may do that by chance";
  family(picture).acquired_meanwhile = 60;
  EXPECT_THAT(kinds_of(picture), testing::ElementsAre("convoy"));
  family(picture).queue.reset();
  EXPECT_THAT(findings_of(picture), IsEmpty());
}

TEST(Findings, WhoTakesMostIsAHogOnlyIfManyOthersWaitOften) {
  for (const auto& [owners, acquisitions, most_waiting] :
       std::vector<std::tuple<int, int, int>>{{2, 1000, 1}, {10, 20, 1}, {10, 1000, 0}}) {
    Picture picture = healthy();
    family(picture).largest_share = 0.9;
    family(picture).owners = static_cast<std::uint64_t>(owners);
    family(picture).acquisitions = static_cast<std::uint64_t>(acquisitions);
    family(picture).most_waiting = static_cast<std::uint64_t>(most_waiting);
    EXPECT_THAT(findings_of(picture), IsEmpty()) << owners << ' ' << acquisitions;
  }
}

TEST(Findings, NameTheWorstLockOfTheirFamily) {
  Picture picture = healthy();
  family(picture).expired_while_held = 4;
  LockPicture mild;
  mild.lock = "order:1";
  mild.store = "redis";
  mild.family = "order";
  mild.figures.expired_while_held = 1;
  LockPicture worst = mild, stranger = mild;
  worst.lock = "order:2";
  worst.figures.expired_while_held = 3;
  stranger.lock = "user:1";
  stranger.family = "user";
  stranger.figures.expired_while_held = 50;
  picture.worst = {stranger, mild, worst};
  EXPECT_EQ(only_finding(picture).lock, "order:2");
}

TEST(Findings, SayHowFarTheCountCanBeTrusted) {
  Picture picture = healthy();
  family(picture).expired_while_held = 51;
  family(picture).ended = 265;
  EXPECT_THAT(only_finding(picture).evidence,
              HasSubstr("51 of 265 ended holdings ended by expiry"));
  EXPECT_THAT(only_finding(picture).evidence, Not(HasSubstr("at least")));
  family(picture).sight = Accuracy::at_least;
  EXPECT_THAT(only_finding(picture).evidence, HasSubstr("at least 51 of"));
}

TEST(Findings, SayAnotherClientOnlyWhereTokensTellClients) {
  Picture picture = healthy();
  family(picture).taken_over = 2;
  EXPECT_THAT(only_finding(picture).evidence, Not(HasSubstr("another client")));
  EXPECT_THAT(only_finding(picture).evidence, Not(HasSubstr("came again with a new token")));
  family(picture).owners = 900;
  EXPECT_THAT(only_finding(picture).evidence, HasSubstr("came again with a new token"));
}

TEST(Findings, AdviseForTheirStore) {
  Picture picture = healthy();
  family(picture).without_ttl_now = 1;
  EXPECT_THAT(only_finding(picture).advice, HasSubstr("SET key token"));
  for (const char* const store : {"etcd", "zookeeper", "postgres"}) {
    family(picture).store = store;
    EXPECT_THAT(only_finding(picture).advice, Not(HasSubstr("SET key token"))) << store;
  }
}

TEST(Picture, IsInTheResult) {
  Picture picture = healthy();
  picture.watched = std::chrono::seconds(60);
  picture.sources.front().commands = 99;
  picture.sources.front().blind_seconds = 2;
  picture.findings = findings_of(picture);
  results::Result result;
  add_to(result, picture);
  EXPECT_EQ(result.observed.value().front().acquisitions, 1000U);
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings.front().kind, "blind");
  ASSERT_EQ(result.sources.size(), 1U);
  EXPECT_EQ(result.sources.front().commands, 99U);
  EXPECT_EQ(result.sources.front().watched_seconds, 60);
  add_to(result, {});
  ASSERT_TRUE(result.observed) << "a watch that saw nothing is no empty run";
  EXPECT_TRUE(result.observed->empty());
}

}  // namespace
}  // namespace lockbench::watch
