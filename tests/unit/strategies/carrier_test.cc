#include "strategies/carrier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "tests/support/eventually.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// Waits end by what they wait for; this bounds a broken one.
constexpr Duration kLatest = test::kPatience;

TEST(ThreadCarrier, ThreadsWakeEachOther) {
  constexpr int kRounds = 1000;
  Carrier& carrier = Carrier::current();
  const auto ping = carrier.make_event(), pong = carrier.make_event();
  std::atomic<int> signals{0};
  const auto play = [&](Event& mine, Event& others) {
    for (int i = 0; i < kRounds; ++i) {
      const auto result = Carrier::current().wait(&mine, Carrier::current().now() + kLatest, {});
      signals += result == WaitResult::signalled ? 1 : 0;
      others.set();
    }
  };
  {
    const std::jthread other([&] { play(*pong, *ping); });
    ping->set();
    play(*ping, *pong);
  }
  EXPECT_EQ(signals, 2 * kRounds);
}

TEST(ThreadCarrier, PollsUntilADescriptorIsReady) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  Carrier& carrier = Carrier::current();
  std::array<pollfd, 2> polled{{{.fd = -1, .events = POLLIN, .revents = 0},
                                {.fd = pipe[0], .events = POLLIN, .revents = 0}}};
  const TimePoint begin = Carrier::current().now();
  carrier.poll(polled, 2ms, {});
  EXPECT_GE(Carrier::current().now() - begin, 2ms);
  EXPECT_EQ(polled[1].revents, 0);
  {
    const std::jthread writer([&] { EXPECT_EQ(::write(pipe[1], "x", 1), 1); });
    carrier.poll(polled, kLatest, {});
    EXPECT_EQ(polled[1].revents, POLLIN);
  }
  for (const int end : pipe) ::close(end);
}

TEST(ThreadCarrier, AStopEndsAPoll) {
  std::stop_source stop;
  const auto polling = std::async(
      std::launch::async, [&] { Carrier::current().poll({}, 2 * kLatest, stop.get_token()); });
  stop.request_stop();
  EXPECT_EQ(polling.wait_for(kLatest), std::future_status::ready);
}

TEST(ThreadCarrier, ATaskRunsOnAThreadOfItsOwnUntilItIsStopped) {
  std::atomic<bool> stopped{false};
  std::thread::id its_thread;
  {
    const auto task = Carrier::current().start(
        [&](const std::stop_token& stop) {
          its_thread = std::this_thread::get_id();
          const auto latest = Carrier::current().now() + kLatest;
          stopped = Carrier::current().wait(nullptr, latest, stop) == WaitResult::stopped;
        },
        {});
    ASSERT_TRUE(task) << task.error();
  }
  EXPECT_TRUE(stopped);
  EXPECT_NE(its_thread, std::this_thread::get_id());
  EXPECT_FALSE(Carrier::current().shared());
}

}  // namespace
}  // namespace lockbench
