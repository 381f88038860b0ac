#include "loadgen/run/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text) {
  const auto fault = parse_fault(text);
  return fault ? "accepted" : fault.error();
}

TEST(Fault, EveryNameIsKnownAndShownAsItIsRead) {
  for (const std::string_view name : kFaults) {
    for (const char* times : {"@2s", "@1500ms+1s"}) {
      const std::string text = std::string(name) + (name == "delay" ? ":5ms" : "") + times;
      const auto fault = parse_fault(text);
      ASSERT_TRUE(fault) << fault.error();
      EXPECT_EQ(to_string(fault->kind), name);
      EXPECT_EQ(fault->to_string(), text);
    }
  }
}

TEST(Fault, LastsUntilTheEndUnlessAnotherTakesThePlace) {
  EXPECT_EQ(parse_fault("store-freeze@1s")->heals_at(), std::nullopt);
  EXPECT_EQ(parse_fault("failover@1s")->heals_at(), 1s);
  EXPECT_EQ(parse_fault("failover@1s+2s")->heals_at(), 3s);
}

TEST(Fault, MayHaveAParameter) {
  EXPECT_EQ(parse_fault("node-kill:2@1s")->nodes, 2);
  EXPECT_EQ(parse_fault("node-freeze@1s")->nodes, 1);
  EXPECT_EQ(parse_fault("partition:0.25@1s")->share, 0.25);
  EXPECT_EQ(parse_fault("partition@1s")->share, 0.5);
  EXPECT_EQ(parse_fault("partition:1@1s")->share, 1);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->delay, 5ms);
  EXPECT_EQ(parse_fault("delay:5ms@1s")->what, "delay:5ms");
}

TEST(Fault, ErrorsNameTheCulpritAndWhatIsAllowed) {
  EXPECT_THAT(error_of("crash@1s"), StartsWith("\"crash\" is none of store-kill, store-freeze"));
  EXPECT_THAT(error_of(""), StartsWith("\"\" is none of"));
  EXPECT_THAT(error_of("store-kill"), HasSubstr("has no time: use store-kill@2s"));
  EXPECT_THAT(error_of("store-kill@soon"), HasSubstr("\"soon\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+"), HasSubstr("\"\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@-1s"), HasSubstr("\"-1s\" is not a duration"));
  EXPECT_THAT(error_of("store-kill@1s+0s"), HasSubstr("at least 1ms"));
  EXPECT_THAT(error_of("failover:2@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("failover:@1s"), HasSubstr("failover takes no parameter"));
  EXPECT_THAT(error_of("node-kill:0@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:@1s"), HasSubstr("nodes from 1 to 15"));
  EXPECT_THAT(error_of("node-kill:2x@1s"), HasSubstr("nodes from 1 to 15"));
  for (const char* share : {"", "0", "1.1", "nan", "-0.5", "half"}) {
    EXPECT_THAT(error_of(std::string("partition:") + share + "@1s"), HasSubstr("up to 1")) << share;
  }
  EXPECT_THAT(error_of("delay@1s"), HasSubstr("delay:5ms"));
  EXPECT_THAT(error_of("delay:0s@1s"), HasSubstr("delay:5ms"));
}

std::vector<Fault> faults(std::initializer_list<const char*> texts) {
  std::vector<Fault> faults;
  for (const char* text : texts) faults.push_back(parse_fault(text).value());
  return faults;
}

TEST(Timetable, IsInTheOrderOfTime) {
  const auto table = timetable(faults({"store-kill@2s+1s", "failover@1s", "delay:1ms@3s"}), 4s);
  ASSERT_TRUE(table) << table.error();
  EXPECT_EQ(table->at(0).what, "failover");
  EXPECT_EQ(table->at(1).what, "store-kill");
  EXPECT_EQ(table->at(2).what, "delay:1ms");
}

TEST(Timetable, FitsIntoTheRun) {
  EXPECT_TRUE(timetable({}, 1s));
  EXPECT_TRUE(timetable(faults({"store-kill@0s+3s"}), 3s));
  EXPECT_EQ(timetable(faults({"store-kill@3s"}), 3s).error(),
            "store-kill@3s would start after the end of the run, which takes 3s");
  EXPECT_EQ(timetable(faults({"store-kill@2s+2s"}), 3s).error(),
            "store-kill@2s+2s would last longer than the run, which takes 3s");
}

TEST(Timetable, HasOneFaultAtATime) {
  EXPECT_THAT(timetable(faults({"store-kill@1s+1s", "delay:1ms@1500ms"}), 3s).error(),
              HasSubstr("delay:1ms@1500ms would start while store-kill@1s+1s is in force"));
  EXPECT_THAT(timetable(faults({"store-kill@1s", "delay:1ms@2s"}), 3s).error(),
              HasSubstr("must not overlap"));
}

}  // namespace
}  // namespace lockbench::loadgen
