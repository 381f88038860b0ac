#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "loadgen/fibers/scheduler.h"
#include "tests/unit/loadgen/fibers/pool_fixture.h"

namespace lockbench::fibers {
namespace {

using testing::IsEmpty;

class WaitsTest : public PoolTest {
 protected:
  ~WaitsTest() override { end(); }
};

TEST_F(WaitsTest, AnEventThatWasSetBeforeEndsOneWaitWhateverTheDeadline) {
  run([] {
    Carrier& carrier = Carrier::current();
    const auto event = carrier.make_event();
    event->set();
    event->set();
    EXPECT_EQ(carrier.wait(event.get(), Carrier::current().now() - 1s, {}), WaitResult::signalled);
    EXPECT_EQ(carrier.wait(event.get(), Carrier::current().now() + 1ms, {}), WaitResult::timed_out);
  });
}

TEST_F(WaitsTest, EachOfManyStopsInTurnIsHeeded) {
  std::array<std::stop_source, 3> stops;
  const auto waiting = Carrier::current().make_event();
  std::atomic<int> timed_out{0}, stopped{0};
  start(0, [&] {
    Carrier& carrier = Carrier::current();
    for (int wait = 0; wait < 9; ++wait) {
      const auto& stop = stops.at(static_cast<std::size_t>(wait) % stops.size());
      const TimePoint soon = Carrier::current().now() + 50us;
      timed_out += carrier.wait(nullptr, soon, stop.get_token()) == WaitResult::timed_out ? 1 : 0;
    }
    waiting->set();
    for (const std::size_t which : {1, 0, 2, 1}) {
      const std::stop_token stop = stops.at(which).get_token();
      stopped += carrier.wait(nullptr, bound(), stop) == WaitResult::stopped ? 1 : 0;
    }
  });
  EXPECT_EQ(Carrier::current().wait(waiting.get(), bound(), {}), WaitResult::signalled);
  for (std::stop_source& stop : stops) stop.request_stop();
  end();
  EXPECT_EQ(timed_out, 9);
  EXPECT_EQ(stopped, 4);
}

TEST_F(WaitsTest, AStopOfAnotherWaitEndsNone) {
  run([] {
    Carrier& carrier = Carrier::current();
    std::stop_source earlier, own;
    const auto wait = [&](Duration longest, const std::stop_source& stop) {
      return carrier.wait(nullptr, Carrier::current().now() + longest, stop.get_token());
    };
    EXPECT_EQ(wait(50us, earlier), WaitResult::timed_out);
    EXPECT_EQ(wait(50us, own), WaitResult::timed_out);
    auto stopper = carrier.start([&](const std::stop_token&) { earlier.request_stop(); }, {});
    EXPECT_EQ(wait(2ms, own), WaitResult::timed_out);
    EXPECT_EQ(wait(kBound, earlier), WaitResult::stopped);
  });
}

TEST_F(WaitsTest, EventsStopsAndDeadlinesMayCoincide) {
  std::atomic<int> ends{0};
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const auto waiting = Carrier::current().make_event(), event = Carrier::current().make_event();
    std::stop_source stop;
    start(round, [&] {
      waiting->set();
      Carrier::current().wait(event.get(), Carrier::current().now() + 50us, stop.get_token());
      ++ends;
    });
    EXPECT_EQ(Carrier::current().wait(waiting.get(), bound(), {}), WaitResult::signalled);
    const std::jthread stopper([&] { stop.request_stop(); });
    event->set();
    end();
  }
  EXPECT_EQ(ends, kRounds);
}

TEST_F(WaitsTest, WhoYieldsForLongStillSeesTimeAndOtherThreadsPass) {
  std::atomic<bool> slept{false}, told{false};
  start(0, [&] {
    Carrier::current().wait(nullptr, Carrier::current().now() + 1ms, {});
    slept = true;
  });
  start(0, [&] {
    const TimePoint latest = bound();
    while ((!slept || !told) && Carrier::current().now() < latest) Carrier::current().yield();
  });
  start(0, [&] { told = true; });
  end();
  EXPECT_TRUE(slept && told);
}

TEST_F(WaitsTest, AFiberSharesItsThread) {
  for (const int on : {0, 1}) start(on, [] { EXPECT_TRUE(Carrier::current().shared()); });
  end();
  EXPECT_FALSE(Carrier::current().shared());
  for (const int on : {0, 1}) EXPECT_GT(pool_->cpu_time(on), Duration::zero());
}

TEST_F(WaitsTest, ErrnoIsEachFibersOwn) {
  for (const int error : {EAGAIN, EINTR}) {
    start(0, [error] {
      errno = error;
      for (int i = 0; i < 5; ++i) Carrier::current().yield();
      EXPECT_EQ(errno, error);
    });
  }
  end();
  EXPECT_THAT(failures_, IsEmpty());
}

TEST(Timers, AgreeWithALookAtAllDeadlines) {
  constexpr auto kAt = [](Duration time) { return TimePoint{} + time; };
  std::mt19937 random(7);
  std::vector<Timed> timed(100);
  Timers timers;  // the queue refers to them
  std::vector<Duration> deadlines(timed.size(), Duration::max());
  for (Duration now = 0s; now < 5000ms; now += 1ms) {
    for (int change = 0; change < 5; ++change) {
      const std::size_t which = random() % timed.size();
      const std::uint32_t kind = random() % 8;
      if (kind > 1) {
        deadlines[which] = now + (1 + random() % 100) * 1ms;
        timers.arm(timed[which], kAt(deadlines[which]));
        continue;
      }
      deadlines[which] = Duration::max();
      if (kind == 0) timers.remove(timed[which]);
      Timers::disarm(timed[which]);
    }
    std::vector<std::size_t> due, expired;
    for (std::size_t which = 0; which < timed.size(); ++which) {
      if (deadlines[which] > now) continue;
      due.push_back(which);
      deadlines[which] = Duration::max();
    }
    timers.expire(kAt(now), [&](const Timed& one) {
      expired.push_back(static_cast<std::size_t>(&one - timed.data()));
    });
    ASSERT_THAT(expired, testing::UnorderedElementsAreArray(due)) << now.count();
  }
}

}  // namespace
}  // namespace lockbench::fibers
