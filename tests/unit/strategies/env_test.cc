#include "strategies/env.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/thread.h"
#include "tests/support/eventually.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// Bounds a broken wait; waits normally end by an event or a stop.
constexpr Duration kBound = test::kPatience;

class SystemEnvTest : public testing::Test {
 protected:
  TimePoint bound() { return env_->now() + kBound; }

  std::unique_ptr<Env> env_ = make_system_env(1);
  std::unique_ptr<Event> event_ = env_->make_event();
};

TEST_F(SystemEnvTest, AnEventThatIsSetDuringTheWaitEndsIt) {
  for (const bool endless : {false, true}) {
    const TimePoint deadline = endless ? TimePoint::max() : bound();
    const std::jthread setter([&] { event_->set(); });
    EXPECT_EQ(env_->wait(event_.get(), deadline, {}), WaitResult::signalled);
  }
}

TEST_F(SystemEnvTest, SetTwiceIsSetOnceAndSeenAfterTheDeadline) {
  event_->set();
  event_->set();
  EXPECT_EQ(env_->wait(event_.get(), env_->now() - 1s, {}), WaitResult::signalled);
  EXPECT_EQ(env_->wait(event_.get(), env_->now() + 1ms, {}), WaitResult::timed_out);
}

TEST_F(SystemEnvTest, AWaitLastsUntilItsDeadline) {
  for (Event* event : {event_.get(), static_cast<Event*>(nullptr)}) {
    const TimePoint deadline = env_->now() + 5ms;
    EXPECT_EQ(env_->wait(event, deadline, {}), WaitResult::timed_out);
    EXPECT_GE(env_->now(), deadline);
  }
}

TEST_F(SystemEnvTest, AStopEndsTheWait) {
  for (Event* event : {event_.get(), static_cast<Event*>(nullptr)}) {
    std::stop_source stop;
    const std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(env_->wait(event, bound(), stop.get_token()), WaitResult::stopped);
  }
}

TEST_F(SystemEnvTest, AnEarlierStopEndsTheWaitAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  for (Event* event : {event_.get(), static_cast<Event*>(nullptr)}) {
    EXPECT_EQ(env_->wait(event, bound(), stop.get_token()), WaitResult::stopped);
    EXPECT_EQ(env_->wait(event, env_->now() - 1s, stop.get_token()), WaitResult::stopped);
  }
  event_->set();
  EXPECT_EQ(env_->wait(event_.get(), bound(), stop.get_token()), WaitResult::signalled);
}

/// The exit status of a child process.
int status_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kRight = 0, kWrong = 1, kImpossible = 2;

/// Calls `is_right` as if the machine had been suspended for 1000 s: in a time namespace, which a
/// process's children enter.
int after_a_suspension(const std::function<bool()>& is_right) {
  return status_of([&] {
    // Root needs no user namespace, and in a chroot none can be created.
    if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) {
      return kImpossible;
    }
    constexpr std::string_view kOffset = "boottime 1000 0\n";
    const int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (write(offsets, kOffset.data(), kOffset.size()) < 0) return kImpossible;
    return status_of([&] { return is_right() ? kRight : kWrong; });
  });
}

TEST_F(SystemEnvTest, ItsTimeGoesOnWhileTheMachineIsSuspendedAndItWaitsByThatTime) {
  const auto is_right = [this] {
    const Duration awake = std::chrono::steady_clock::now().time_since_epoch();
    const TimePoint begin = env_->now();
    if (begin.time_since_epoch() - awake < 1000s || BootClock::suspended() < 1000s) return false;
    const bool timed_out = env_->wait(nullptr, begin + 5ms, {}) == WaitResult::timed_out;
    return timed_out && env_->now() >= begin + 5ms && env_->now() < begin + kBound;
  };
  const int status = after_a_suspension(is_right);
  if (status == kImpossible) GTEST_SKIP() << "no time namespaces here";
  EXPECT_EQ(status, kRight);
}

TEST_F(SystemEnvTest, UsesTheSystemClocks) {
  timespec boot{};
  ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &boot), 0);
  const TimePoint before(std::chrono::seconds(boot.tv_sec) +
                         std::chrono::nanoseconds(boot.tv_nsec));
  EXPECT_GE(env_->now(), before);
  EXPECT_LT(env_->now(), before + kBound);
  const WallTime wall_before = std::chrono::system_clock::now();
  EXPECT_GE(env_->wall_now(), wall_before);
  EXPECT_LT(env_->wall_now(), wall_before + 1h);
}

TEST_F(SystemEnvTest, TokensAre128BitsInHexAndUnique) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = random_token(*env_);
    EXPECT_EQ(token.size(), 32U);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos) << token;
    EXPECT_TRUE(tokens.insert(token).second) << token;
  }
}

TEST(ThreadCarrier, ATaskRunsOnAThreadOfItsOwnUntilItIsStopped) {
  std::atomic<bool> stopped{false};
  std::thread::id its_thread;
  {
    const auto task = Carrier::current().start(
        [&](const std::stop_token& stop) {
          its_thread = std::this_thread::get_id();
          const auto latest = Carrier::current().now() + kBound;
          stopped = Carrier::current().wait(nullptr, latest, stop) == WaitResult::stopped;
        },
        {});
    ASSERT_TRUE(task) << task.error();
  }
  EXPECT_TRUE(stopped);
  EXPECT_NE(its_thread, std::this_thread::get_id());
  EXPECT_FALSE(Carrier::current().shared());
}

const Thread::OnFailure unexpected = [](const std::string& why) { ADD_FAILURE() << why; };

TEST(Thread, WhatItsBodyThrowsIsALineOfText) {
  std::vector<std::string> told;
  const auto tell = [&](const std::string& why) { told.push_back(why); };
  Thread::start([](const std::stop_token&) { throw std::out_of_range("no such element"); }, tell)
      ->finish();
  Thread::start([](const std::stop_token&) { throw 1; }, tell)->finish();
  EXPECT_THAT(told, testing::ElementsAre("no such element", "an unknown exception"));
}

/// Runs it in a process that may create no thread. Returns its output.
std::string said_without_threads(std::string (*work)()) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // The limit does not apply to root.
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

TEST(RandomSeed, UsesAll64Bits) {
  std::uint64_t seen = 0;
  for (int i = 0; i < 64; ++i) seen |= random_seed();
  EXPECT_EQ(seen, ~std::uint64_t{0});
}

}  // namespace
}  // namespace lockbench
