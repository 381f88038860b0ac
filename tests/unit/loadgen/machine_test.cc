#include "loadgen/record/certificate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockbench::loadgen {
namespace {

constexpr std::string_view kStat =
    "cpu  1000 200 300 4000 50 6 14 30 400 100\n"
    "cpu0 500 100 150 2000 25 3 7 15 200 50\n"
    "intr 12345 0 1\n";

TEST(Machine, StatIsReadInSeconds) {
  const auto cpu = parse_machine_cpu(kStat, 100);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(cpu->programs, 15);
  EXPECT_DOUBLE_EQ(cpu->busy, 15.2) << "with interrupts";
  EXPECT_DOUBLE_EQ(cpu->stolen, 0.3);
  EXPECT_DOUBLE_EQ(cpu->total, 56) << "guests are a part of user and nice";
}

TEST(Machine, WhatAnOlderKernelWritesIsEnough) {
  const auto cpu = parse_machine_cpu("cpu 1 2 3 4 5 6 7 8", 100);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(cpu->total, 0.36);
}

TEST(Machine, ATextOfAnotherFormIsNone) {
  for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu a b c"}) {
    EXPECT_FALSE(parse_machine_cpu(text, 100)) << text;
  }
  EXPECT_FALSE(parse_machine_cpu(kStat, 0));
}

TEST(Machine, ADifferenceIsThatOfEachKind) {
  const MachineCpu later{.total = 10, .busy = 6, .programs = 5, .stolen = 1};
  const MachineCpu difference =
      later - MachineCpu{.total = 4, .busy = 3, .programs = 3, .stolen = 1};
  EXPECT_DOUBLE_EQ(difference.total, 6);
  EXPECT_DOUBLE_EQ(difference.busy, 3);
  EXPECT_DOUBLE_EQ(difference.programs, 2);
  EXPECT_DOUBLE_EQ(difference.stolen, 0);
}

TEST(Machine, PressureIsThatOfSomeThreads) {
  EXPECT_EQ(parse_cpu_pressure("some avg10=2.51 avg60=1.00 avg300=0.10 total=2500000\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"),
            2.5);
}

TEST(Machine, NoPressureWhereTheKernelHasNone) {
  for (const char* text : {"", "full avg10=0.00 total=99", "some avg10=0.00", "some total=x"}) {
    EXPECT_FALSE(parse_cpu_pressure(text)) << text;
  }
}

/// A kernel's files of control groups.
class ControlGroupsTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void throttle(const std::string& group, int microseconds) const {
    write("sys/fs/cgroup" + group + "/cpu.stat",
          "usage_usec 7000000\nnr_throttled 3\nthrottled_usec " + std::to_string(microseconds) +
              "\nnr_bursts 0\n");
  }
  std::optional<double> throttled() const { return read_throttled_seconds(root_); }

 private:
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("lockbench-groups-" + std::to_string(::getpid()));
};

TEST_F(ControlGroupsTest, TheLimitsOfTheOwnGroupAndOfThoseAroundItAddUp) {
  write("proc/self/cgroup", "1:cpu:/elsewhere\n0::/pod/container\n");
  throttle("/pod/container", 250'000);
  throttle("/pod", 1'000'000);
  throttle("/elsewhere", 9'000'000);
  EXPECT_DOUBLE_EQ(throttled().value(), 1.25);
}

TEST_F(ControlGroupsTest, AContainerSeesItsOwnGroupAsTheOutermost) {
  write("proc/self/cgroup", "0::/\n");
  throttle("", 500'000);
  EXPECT_DOUBLE_EQ(throttled().value(), 0.5);
}

TEST_F(ControlGroupsTest, WithoutALimitNothingIsTold) {
  EXPECT_FALSE(throttled());
  write("proc/self/cgroup", "1:cpu:/a\n");
  EXPECT_FALSE(throttled()) << "version 1 only";
  write("proc/self/cgroup", "0::/a\n");
  EXPECT_FALSE(throttled()) << "no such group";
  write("sys/fs/cgroup/a/cpu.stat", "usage_usec 7000000\nuser_usec 5000000\n");
  EXPECT_FALSE(throttled()) << "its CPU is not limited";
}

TEST(Machine, ThisOneTellsOfItsCpu) {
  const auto cpu = read_machine().cpu;
  ASSERT_TRUE(cpu);
  EXPECT_GT(cpu->busy, 0);
  EXPECT_GE(cpu->busy, cpu->programs);
  EXPECT_GT(cpu->total, cpu->busy);
}

}  // namespace
}  // namespace lockbench::loadgen
