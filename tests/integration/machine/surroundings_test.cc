#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "testbed/process/clock_page.h"
#include "tests/folders.h"
#include "tests/integration/machine/under.h"
#include "tests/integration/support/documents.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

TEST(Surroundings, WithoutHomeNameOrTerminalAreEnough) {
  const Scratch scratch;
  Words wrapper = as_stranger(scratch);
  wrapper.insert(wrapper.end(), {"/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LANG=C",
                                 "TMPDIR=" + scratch.path().string()});
  const Outcome outcome =
      run(scratch, under(wrapper, short_run({"redis-set-nx", "local-mutex", "--out", "r.json"})));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(is_ascii(outcome.out)) << outcome.out;
  EXPECT_TRUE(is_ascii(outcome.err)) << outcome.err;
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").size(), 2U);
}

/// The page from which the program reads how far its wall clock is ahead.
class Clock : public testing::Test {
 protected:
  Clock()
      : path_(scratch_.write("clock", std::string(sizeof(testbed::ClockPage), '\0'))),
        file_(open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {}
  ~Clock() override { close(file_); }

  void go_back_by_an_hour() {
    page_.ahead -= std::chrono::nanoseconds(std::chrono::hours(1)).count();
    ASSERT_EQ(pwrite(file_, &page_, sizeof page_, 0), ssize_t{sizeof page_});
  }

  const Scratch scratch_;
  const std::string path_;
  const int file_;
  testbed::ClockPage page_;
};

TEST_F(Clock, ThatIsSetBackMarksTheRunAndChangesNoTimes) {
  Program program(scratch_,
                  {"run", "local-mutex", "--duration", "1s", "--warmup", "0ms", "--hold", "1ms",
                   "--strict", "--out", "r.json"},
                  {.environment = {{"LD_PRELOAD", LOCKBENCH_BINARY_DIR "/lockbench-clock-shim.so"},
                                   {"LOCKBENCH_CLOCK_FILE", path_}}});
  EXPECT_TRUE(eventually([&] {
    go_back_by_an_hour();
    return std::filesystem::exists(scratch_ / "r.json");
  }));
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const Json result = read_result(scratch_ / "r.json");
  const Json& one = run_of(result, "local-mutex");
  EXPECT_FALSE(one.at("generator").at("valid"));
  expect_in(one.at("generator").at("reasons").dump(), "clock");
  EXPECT_GE(one.at("duration_seconds"), 1);
  EXPECT_GE(one.at("acquire").at("min"), 0);
  constexpr int kAnHour = 3600;
  EXPECT_LT(one.at("duration_seconds"), kAnHour);
  EXPECT_LT(one.at("acquire").at("max"), kAnHour);
  EXPECT_TRUE(kept_exclusion(one));
}

}  // namespace
}  // namespace lockbench::test
