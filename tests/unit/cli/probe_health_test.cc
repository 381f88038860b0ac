#include "cli/commands/probe_health.h"

#include <algorithm>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;

class ProbeHealthTest : public testing::Test {
 protected:
  /// The run's figures so far.
  void progress(std::uint64_t sections, std::uint64_t failed,
                loadgen::Progress::Phase phase = loadgen::Progress::Phase::measuring) {
    health_.on_progress(
        {.strategy = "redis-x", .phase = phase, .sections = sections, .failed = failed});
  }
  std::size_t lines() {
    const std::string text = written_.text();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  Written written_;
  Console console_{written_.stream(), false, true};
  ProbeHealth health_{"redis-x", console_};
};

TEST_F(ProbeHealthTest, IsSilentWhileAllIsWell) {
  for (const std::uint64_t sections : {0, 5, 10, 10, 15}) progress(sections, 0);
  EXPECT_EQ(written_.text(), "");
}

TEST_F(ProbeHealthTest, SaysOnceThatItFailsAndOnceThatItWorksAgain) {
  progress(5, 0);
  for (const std::uint64_t failed : {1, 2, 3}) progress(5, failed);
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: failing: acquisitions fail"));
  progress(5, 3);
  EXPECT_EQ(lines(), 1U) << "nothing happened";
  for (const std::uint64_t sections : {6, 7}) progress(sections, 3);
  EXPECT_EQ(lines(), 2U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: working again after 0 s"));
}

TEST_F(ProbeHealthTest, WhoeverFailsAndWorksAtOnceStillFails) {
  progress(5, 1);
  progress(6, 2);
  EXPECT_EQ(lines(), 1U);
}

TEST_F(ProbeHealthTest, ALockOfItsOwnThatIsNotGrantedIsAFailure) {
  for (const std::uint64_t in_vain : {0, 1, 2}) {
    health_.on_progress({.strategy = "redis-x", .sections = 5, .in_vain = in_vain});
  }
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: failing: uncontended locks"));
}

TEST_F(ProbeHealthTest, AStoreThatIsNotReachedFailsUntilTheNextRunWorks) {
  progress(9, 0);
  health_.on_unreachable("connection refused");
  health_.on_unreachable("connection refused");
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: failing: connection refused"));
  progress(0, 0, loadgen::Progress::Phase::connecting);
  EXPECT_EQ(lines(), 1U) << "it has not worked yet";
  progress(1, 0);
  EXPECT_EQ(lines(), 2U) << "the next run counts from nothing";
}

TEST_F(ProbeHealthTest, WarningsAreShownAndNoFailure) {
  health_.on_warning("the clock jumped");
  EXPECT_EQ(written_.text(), "warning: the clock jumped\n");
  progress(1, 0);
  EXPECT_EQ(lines(), 1U);
}

}  // namespace
}  // namespace lockbench::cli
