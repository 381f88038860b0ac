#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <set>

#include "exporter/collect.h"

namespace lockbench::exporter {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

watch::Picture sample_picture() {
  watch::Picture picture;
  watch::SourcePicture source;
  source.facts = {.store = "redis",
                  .endpoint = "redis://h:6379",
                  .way = "CLIENT TRACKING",
                  .accuracy = watch::Accuracy::at_least};
  source.missed = 3;
  source.commands = 77;
  picture.sources.push_back(source);
  watch::FamilyPicture family;
  family.store = "redis";
  family.family = "lock:order:*";
  family.locks = 9;
  family.acquisitions = 12;
  family.expired_while_held = 2;
  family.held_now = 4;
  family.oldest_hold = 90;
  family.holds.record(20ms);
  family.most_waited_for = "lock:order:secret-customer";
  picture.families.push_back(family);
  watch::LockPicture lock;
  lock.lock = "lock:order:secret-customer";
  lock.holder = "owner-hash";
  picture.worst.push_back(lock);
  return picture;
}

class CollectWatchTest : public testing::Test {
 protected:
  std::string page() const {
    return prometheus::TextSerializer().Serialize(
        collect(metrics_, {.run = {}, .build = {"1.2", "c0ffee", "Debug"}}));
  }

  WatchMetrics metrics_;
};

TEST_F(CollectWatchTest, HasFiguresByFamilyAndBySource) {
  metrics_.show(sample_picture());
  const std::string text = page();
  const std::string family = "{store=\"redis\",family=\"lock:order:*\"}";
  const std::string source = "{store=\"redis\",endpoint=\"redis://h:6379\"}";
  EXPECT_THAT(text, HasSubstr("lockbench_watch_acquisitions_total" + family + " 12\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_expired_while_held_total" + family + " 2\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_held" + family + " 4\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_oldest_hold_seconds" + family + " 90\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_hold_duration_seconds_count" + family + " 1\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_sees" + source + " 1\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_missed_total" + source + " 3\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_watch_commands_total" + source + " 77\n"));
  EXPECT_THAT(text, HasSubstr("way=\"CLIENT TRACKING\",accuracy=\"at_least\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("lockbench_build_info{version=\"1.2\",commit=\"c0ffee\","
                              "build_type=\"Debug\"} 1\n"));
}

TEST_F(CollectWatchTest, WhatIsNotKnownIsNotZero) {
  metrics_.show(sample_picture());
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_waiters{store=\"redis\","
                                "family=\"lock:order:*\"} Nan\n"));
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_margin_min_seconds{store=\"redis\","
                                "family=\"lock:order:*\"} Nan\n"));
  watch::Picture known = sample_picture();
  known.families[0].waiting_now = 0;
  known.families[0].margin_min = 0.25;
  metrics_.show(known);
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_waiters{store=\"redis\","
                                "family=\"lock:order:*\"} 0\n"));
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_margin_min_seconds{store=\"redis\","
                                "family=\"lock:order:*\"} 0.25\n"));
}

TEST_F(CollectWatchTest, NamesNeitherLocksNorOwners) {
  metrics_.show(sample_picture());
  EXPECT_THAT(page(), Not(HasSubstr("secret-customer")));
  EXPECT_THAT(page(), Not(HasSubstr("owner-hash")));
}

TEST_F(CollectWatchTest, NamesAndHelpAreThereAndNoneTwice) {
  std::set<std::string> names;
  for (const auto& family : collect(metrics_, {})) {
    EXPECT_TRUE(family.name.starts_with("lockbench_")) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
  }
}

TEST_F(CollectWatchTest, IsReadyWhileEverySourceSees) {
  EXPECT_THAT(metrics_.failing(), ElementsAre("nothing was seen yet"));
  metrics_.show(sample_picture());
  EXPECT_THAT(metrics_.failing(), IsEmpty());
  watch::Picture blind = sample_picture();
  blind.sources[0].sees = false;
  blind.sources[0].blind_reason = "connection refused";
  metrics_.show(blind);
  EXPECT_THAT(metrics_.failing(), ElementsAre("redis://h:6379: connection refused"));
  EXPECT_THAT(page(), HasSubstr("lockbench_watch_sees{store=\"redis\","
                                "endpoint=\"redis://h:6379\"} 0\n"));
}

}  // namespace
}  // namespace lockbench::exporter
