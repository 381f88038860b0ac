#include "watch/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace lockbench::watch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = Finding::Kind;

/// A family with nothing to complain of.
Picture healthy() {
  Picture picture;
  picture.sources = {{.facts = {.store = "redis", .endpoint = "127.0.0.1:1", .way = "script"}}};
  FamilyPicture family{.store = "redis", .family = "order"};
  family.figures.acquisitions = family.figures.releases = 1000;
  family.figures.owners = 10;
  family.figures.largest_share = 0.1;
  family.figures.accuracy = Accuracy::exact;
  family.queue = {.oldest = 2, .middle = 1, .latest = 2, .known = true};
  picture.families = {family};
  return picture;
}

std::vector<Kind> kinds_of(const Picture& picture) {
  std::vector<Kind> kinds;
  for (const Finding& finding : findings_of(picture)) kinds.push_back(finding.kind);
  return kinds;
}

Finding only_finding(const Picture& picture) {
  const std::vector<Finding> findings = findings_of(picture);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

struct Case {
  Kind kind;
  std::function<void(Picture&)> hurt;
};

Figures& figures(Picture& picture) { return picture.families.front().figures; }

/// What makes each kind be found, and no other.
std::vector<Case> cases() {
  return {
      {Kind::stolen, [](Picture& picture) { figures(picture).owner_changed = 1; }},
      {Kind::taken_over, [](Picture& picture) { figures(picture).taken_over = 1; }},
      {Kind::expired, [](Picture& picture) { figures(picture).expired_while_held = 1; }},
      {Kind::dead_session, [](Picture& picture) { figures(picture).session_lost = 1; }},
      {Kind::thin_margin, [](Picture& picture) { figures(picture).thin_margins = 1; }},
      {Kind::thin_margin, [](Picture& picture) { figures(picture).undecided = 1; }},
      {Kind::renewal_stopped, [](Picture& picture) { figures(picture).renewal_stopped_now = 1; }},
      {Kind::held_long, [](Picture& picture) { figures(picture).held_long_now = 1; }},
      {Kind::no_ttl, [](Picture& picture) { figures(picture).without_ttl = 1; }},
      {Kind::no_ttl, [](Picture& picture) { figures(picture).without_ttl_now = 1; }},
      {Kind::convoy,
       [](Picture& picture) {
         picture.families.front().queue = {.oldest = 1, .middle = 3, .latest = 5, .known = true};
       }},
      {Kind::hog,
       [](Picture& picture) {
         figures(picture).largest_share = 0.9;
         figures(picture).most_waiting = 1;
       }},
      {Kind::blind, [](Picture& picture) { picture.sources.front().sees = false; }},
      {Kind::blind, [](Picture& picture) { picture.sources.front().blind_seconds = 3; }},
      {Kind::blind, [](Picture& picture) { picture.sources.front().missed = 3; }},
      {Kind::blind, [](Picture& picture) { picture.locks_unfollowed = 3; }},
  };
}

TEST(Findings, AHealthyFamilyHasNone) { EXPECT_THAT(findings_of(healthy()), IsEmpty()); }

TEST(Findings, EachKindIsFoundAlone) {
  for (const Case& one : cases()) {
    Picture picture = healthy();
    one.hurt(picture);
    EXPECT_THAT(kinds_of(picture), testing::ElementsAre(one.kind)) << name_of(one.kind);
    for (const Finding& finding : findings_of(picture)) {
      EXPECT_THAT(finding.evidence, Not(IsEmpty())) << name_of(one.kind);
      EXPECT_THAT(finding.advice, Not(IsEmpty())) << name_of(one.kind);
      EXPECT_GE(finding.times, 1U) << name_of(one.kind);
    }
  }
}

TEST(Findings, WhatHurtsMostComesFirst) {
  Picture picture = healthy();
  figures(picture).thin_margins = 100'000;
  figures(picture).expired_while_held = 1;
  figures(picture).owner_changed = 1;
  EXPECT_THAT(kinds_of(picture),
              testing::ElementsAre(Kind::stolen, Kind::expired, Kind::thin_margin));
}

TEST(Findings, AQueueIsAConvoyOnlyIfItGrowsAndIsLong) {
  const std::vector<Queue> queues = {{.oldest = 5, .middle = 5, .latest = 6, .known = true},
                                     {.oldest = 0, .middle = 1, .latest = 2, .known = true},
                                     {.oldest = 9, .middle = 6, .latest = 3, .known = true},
                                     {.oldest = 1, .middle = 3, .latest = 5, .known = false}};
  for (const Queue& queue : queues) {
    Picture picture = healthy();
    picture.families.front().queue = queue;
    EXPECT_THAT(findings_of(picture), IsEmpty()) << queue.latest;
  }
}

TEST(Findings, WhoTakesMostIsAHogOnlyIfManyOthersWaitOften) {
  for (const auto& [owners, acquisitions, most_waiting] :
       std::vector<std::tuple<int, int, int>>{{2, 1000, 1}, {10, 20, 1}, {10, 1000, 0}}) {
    Picture picture = healthy();
    figures(picture).largest_share = 0.9;
    figures(picture).owners = static_cast<std::uint64_t>(owners);
    figures(picture).acquisitions = static_cast<std::uint64_t>(acquisitions);
    figures(picture).most_waiting = static_cast<std::uint64_t>(most_waiting);
    EXPECT_THAT(findings_of(picture), IsEmpty()) << owners << ' ' << acquisitions;
  }
}

TEST(Findings, NameTheWorstLockOfTheirFamily) {
  Picture picture = healthy();
  figures(picture).expired_while_held = 4;
  LockPicture mild{.name = "order:1", .store = "redis", .family = "order"};
  mild.figures.expired_while_held = 1;
  LockPicture worst = mild, stranger = mild;
  worst.name = "order:2";
  worst.figures.expired_while_held = 3;
  stranger.name = "user:1";
  stranger.family = "user";
  stranger.figures.expired_while_held = 50;
  picture.worst = {stranger, mild, worst};
  EXPECT_EQ(only_finding(picture).lock, "order:2");
}

TEST(Findings, SayHowFarTheCountCanBeTrusted) {
  Picture picture = healthy();
  figures(picture).expired_while_held = 51;
  figures(picture).releases = 214;
  EXPECT_THAT(only_finding(picture).evidence,
              HasSubstr("51 of 265 ended holdings ended by expiry"));
  EXPECT_THAT(only_finding(picture).evidence, Not(HasSubstr("at least")));
  figures(picture).accuracy = Accuracy::at_least;
  EXPECT_THAT(only_finding(picture).evidence, HasSubstr("at least 51 of"));
}

}  // namespace
}  // namespace lockbench::watch
