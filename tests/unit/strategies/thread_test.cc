#include "strategies/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockbench {
namespace {

const Thread::OnFailure unexpected = [](const std::string& why) { ADD_FAILURE() << why; };

TEST(Thread, WhatItsBodyThrowsIsALineOfText) {
  std::vector<std::string> told;
  const auto tell = [&](const std::string& why) { told.push_back(why); };
  Thread::start([](const std::stop_token&) { throw std::out_of_range("no such element"); }, tell)
      ->finish();
  Thread::start([](const std::stop_token&) { throw 1; }, tell)->finish();
  EXPECT_THAT(told, testing::ElementsAre("no such element", "an unknown exception"));
}

TEST(Thread, CanBeMovedAndFinishedTwice) {
  Thread none;
  EXPECT_FALSE(none.started());
  none.finish();
  none = *Thread::start([](const std::stop_token&) {}, unexpected);
  EXPECT_TRUE(none.started());
  Thread other = std::move(none);
  other.finish();
  other.finish();
  EXPECT_FALSE(other.started());
}

/// In a process of its own, which may have no further thread. Returns what it says.
std::string said_without_threads(std::string (*work)()) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // The limit does not hold for root.
    constexpr uid_t kNobody = 65534;
    const rlimit one{1, 1};
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    if (::setrlimit(RLIMIT_NPROC, &one) != 0) ::_exit(2);
    const std::string said = work();
    ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 2 : 0);
  }
  ::close(ends[1]);
  std::string said(1000, '\0');
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return said;
}

TEST(Thread, ThatCannotBeStartedIsAnErrorThatNamesTheLimit) {
  const std::string said = said_without_threads([]() -> std::string {
    const auto thread = Thread::start([](const std::stop_token&) {}, unexpected);
    return thread ? "it was started" : thread.error();
  });
  EXPECT_EQ(said,
            "a thread cannot be started: Resource temporarily unavailable (limit of user "
            "processes: 1; ulimit -u)");
}

TEST(InBackground, WithoutAThreadTheWorkIsDoneAtOnce) {
  EXPECT_EQ(
      said_without_threads([] { return in_background([] { return std::string("done"); }).get(); }),
      "done");
}

TEST(InBackground, PassesOnWhatTheWorkThrows) {
  auto failing = in_background([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW(failing.get(), std::runtime_error);
}

}  // namespace
}  // namespace lockbench
