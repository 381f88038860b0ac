#include "cli/commands/probe_health.h"

#include <algorithm>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using loadgen::FailureReason;
using testing::AllOf;
using testing::HasSubstr;

/// A second passes with each call.
class ProbeHealthTest : public testing::Test {
 protected:
  void pass(Duration time = 1s) { now_ += time; }
  /// Adds this many sections.
  void works(std::uint64_t sections = 5) {
    progress_.sections += sections;
    tell();
  }
  void fails(FailureReason reason, std::uint64_t failures = 1) {
    progress_.failures[reason] += failures;
    tell();
  }
  void tell() {
    health_.on_progress(progress_);
    pass();
  }
  std::size_t lines() {
    const std::string text = written_.text();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  bool ready() const { return !reports_.empty() && !reports_.back(); }

  Written written_;
  Console console_{written_.stream(), false, true};
  loadgen::Progress progress_{.strategy = "redis-x", .phase = loadgen::Progress::Phase::measuring};
  TimePoint now_{1h};
  std::vector<std::optional<FailureReason>> reports_;
  ProbeHealth health_{"redis-x", 5s, console_,
                      [this](std::optional<FailureReason> why) { reports_.push_back(why); },
                      [this] { return now_; }};
};

TEST_F(ProbeHealthTest, IsSilentAndReadyWhileAllIsWell) {
  tell();
  EXPECT_TRUE(reports_.empty()) << "nothing has worked yet";
  for (int second = 0; second < 20; ++second) works();
  EXPECT_EQ(written_.text(), "");
  EXPECT_TRUE(ready());
}

TEST_F(ProbeHealthTest, SaysOnceThatItFailsAndWhyAndOnceThatItWorksAgain) {
  works();
  progress_.messages[FailureReason::oom] = "h:1: OOM command not allowed";
  for (int second = 0; second < 60; ++second) fails(FailureReason::oom);
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: failing: oom: h:1: OOM command not allowed"));
  EXPECT_EQ(reports_.back(), FailureReason::oom);
  tell();
  EXPECT_EQ(lines(), 1U) << "nothing happened";
  for (int second = 0; second < 10; ++second) works();
  EXPECT_EQ(lines(), 2U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: working again after 61 s"));
  EXPECT_TRUE(ready());
}

TEST_F(ProbeHealthTest, FailsAsLongAsALockIsStuckWhateverTheOthersDo) {
  works();
  fails(FailureReason::taken);
  progress_.stuck = 1;
  for (int second = 0; second < 30; ++second) works();
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("failing: taken: somebody else holds the lock"));
  EXPECT_EQ(reports_.back(), FailureReason::taken);
  progress_.stuck = 0;
  for (int second = 0; second < 10; ++second) works();
  EXPECT_EQ(lines(), 2U);
}

TEST_F(ProbeHealthTest, AnotherReasonIsNewsButNotTooOften) {
  works();
  fails(FailureReason::unreachable);
  for (int second = 0; second < 5; ++second) {
    fails(FailureReason::busy);
    fails(FailureReason::unreachable);
  }
  EXPECT_EQ(lines(), 1U);
  for (int second = 0; second < 5; ++second) fails(FailureReason::auth, 3);
  EXPECT_EQ(lines(), 2U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: still failing: auth: "));
}

TEST_F(ProbeHealthTest, SlownessIsSaidUntilThereIsAnError) {
  progress_.failures[FailureReason::taken] = 1;
  fails(FailureReason::slow, 20);
  EXPECT_EQ(reports_.back(), FailureReason::slow);
  progress_.failures[FailureReason::timeout] = 1;
  fails(FailureReason::slow, 20);
  EXPECT_EQ(reports_.back(), FailureReason::timeout);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: still failing: timeout: "));
}

TEST_F(ProbeHealthTest, AStoreThatIsNotReachedFailsUntilTheNextRunWorks) {
  works(9);
  health_.on_unreachable("h:1: Connection refused");
  health_.on_unreachable("h:1: Connection refused");
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(), HasSubstr("failing: unreachable: h:1: Connection refused"));
  progress_ = {.strategy = "redis-x", .phase = loadgen::Progress::Phase::connecting};
  tell();
  EXPECT_EQ(lines(), 1U) << "it has not worked yet";
  progress_.phase = loadgen::Progress::Phase::measuring;
  for (int second = 0; second < 10; ++second) works(1);
  EXPECT_EQ(lines(), 2U) << "the next run counts from nothing";
}

TEST_F(ProbeHealthTest, FindingsAreSaidWithTheirCauseAndNotTooOften) {
  health_.on_findings({}, "");
  EXPECT_EQ(lines(), 0U);
  for (int second = 0; second < 15; ++second) {
    health_.on_findings({.leases_lost = 1}, "the server has restarted");
    pass();
  }
  EXPECT_EQ(lines(), 2U);
  EXPECT_THAT(written_.text(),
              AllOf(HasSubstr("redis-x: leases lost while held: 1: the server has restarted\n"),
                    HasSubstr("redis-x: leases lost while held: 10: the server has restarted\n")));
  health_.on_findings({}, "", true);
  EXPECT_EQ(lines(), 3U) << "the last ones";
  pass(10s);
  health_.on_findings({.overlaps = 2, .fence_resets = 1}, "not known");
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: two holders at once: 2, fencing numbers that "
                                         "went back: 1: not known\n"));
  EXPECT_TRUE(reports_.empty()) << "locks are still granted";
}

TEST_F(ProbeHealthTest, NewConnectionsThatFailAreSaidOnceAndThatTheyWorkAgain) {
  health_.on_connect(std::nullopt);
  EXPECT_EQ(lines(), 0U);
  for (int times = 0; times < 5; ++times) health_.on_connect("h:1: ERR max number of clients");
  EXPECT_EQ(lines(), 1U);
  EXPECT_THAT(written_.text(),
              HasSubstr("redis-x: a new connection failed, while open ones still work: h:1: ERR"));
  health_.on_connect(std::nullopt);
  health_.on_connect(std::nullopt);
  EXPECT_EQ(lines(), 2U);
  EXPECT_THAT(written_.text(), HasSubstr("redis-x: new connections work again\n"));
}

}  // namespace
}  // namespace lockbench::cli
