#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

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

/// Goes back by an hour again and again, as long as it exists.
class BackwardClock {
 public:
  explicit BackwardClock(const std::string& file)
      : file_(open(file.c_str(), O_WRONLY | O_CLOEXEC)) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      testbed::ClockPage page;
      while (!stop.stop_requested()) {
        page.ahead -= std::chrono::nanoseconds(std::chrono::hours(1)).count();
        if (pwrite(file_, &page, sizeof page, 0) != ssize_t{sizeof page}) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
  }
  BackwardClock(const BackwardClock&) = delete;
  BackwardClock& operator=(const BackwardClock&) = delete;
  ~BackwardClock() {
    thread_.request_stop();
    thread_.join();
    close(file_);
  }

 private:
  const int file_;
  std::jthread thread_;
};

TEST(Clock, ThatIsSetBackMarksTheRunAndChangesNoTimes) {
  const Scratch scratch;
  const std::string file = scratch.write("clock", std::string(sizeof(testbed::ClockPage), '\0'));
  const BackwardClock clock(file);
  const Outcome outcome =
      lockbench(scratch,
                {"run", "local-mutex", "--duration", "1s", "--warmup", "0ms", "--ttl", "300ms",
                 "--hold", "1ms", "--strict", "--out", "r.json"},
                {.environment = {{"LD_PRELOAD", LOCKBENCH_BINARY_DIR "/lockbench-clock-shim.so"},
                                 {"LOCKBENCH_CLOCK_FILE", file}}});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  const Json& one = run_of(result, "local-mutex");
  EXPECT_FALSE(one.at("generator").at("valid"));
  expect_in(one.at("generator").at("reasons").dump(), "clock");
  EXPECT_NEAR(one.at("duration_seconds"), 1, 0.5);
  EXPECT_GE(one.at("acquire").at("min"), 0);
  EXPECT_LT(one.at("acquire").at("max"), 10);
  EXPECT_TRUE(kept_exclusion(one));
}

}  // namespace
}  // namespace lockbench::test
