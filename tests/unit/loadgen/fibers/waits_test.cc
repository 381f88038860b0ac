#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "loadgen/fibers/scheduler.h"
#include "tests/unit/loadgen/fibers/pool_fixture.h"

namespace lockbench::fibers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WaitsTest : public PoolTest {
 protected:
  ~WaitsTest() override { end(); }

  /// Two fibers on these threads wake each other a thousand times.
  void play_ping_pong(int first, int second) {
    const auto ping = Carrier::current().make_event(), pong = Carrier::current().make_event();
    std::atomic<int> signals{0};
    const auto play = [&signals](Event& mine, Event& others) {
      for (int i = 0; i < 1000; ++i) {
        signals += Carrier::current().wait(&mine, bound(), {}) == WaitResult::signalled ? 1 : 0;
        others.set();
      }
    };
    start(first, [&] { play(*ping, *pong); });
    start(second, [&] { play(*pong, *ping); });
    ping->set();
    end();
    EXPECT_EQ(signals, 2000);
  }
};

TEST_F(WaitsTest, FibersOfOneThreadWakeEachOther) { play_ping_pong(0, 0); }

TEST_F(WaitsTest, FibersOfTwoThreadsWakeEachOther) { play_ping_pong(0, 1); }

TEST_F(WaitsTest, AThreadAndAFiberWakeEachOther) {
  const auto ping = Carrier::current().make_event(), pong = Carrier::current().make_event();
  start(0, [&] {
    EXPECT_EQ(Carrier::current().wait(ping.get(), bound(), {}), WaitResult::signalled);
    pong->set();
  });
  ping->set();
  EXPECT_EQ(Carrier::current().wait(pong.get(), bound(), {}), WaitResult::signalled);
  end();
}

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

TEST_F(WaitsTest, AStopEndsWaitsFromAnyThread) {
  std::stop_source stop;
  std::atomic<int> waiting{0}, stopped{0};
  for (int on = 0; on < 4; ++on) {
    start(on, [&] {
      ++waiting;
      const WaitResult result = Carrier::current().wait(nullptr, bound(), stop.get_token());
      stopped += result == WaitResult::stopped ? 1 : 0;
    });
  }
  start(0, [&] {
    while (waiting < 4) Carrier::current().yield();
    stop.request_stop();
  });
  end();
  EXPECT_EQ(stopped, 4);
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

TEST_F(WaitsTest, AYieldLetsTheOthersOfItsThreadRun) {
  std::vector<int> turns;
  run([&turns] {
    Carrier& carrier = Carrier::current();
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.reserve(2);
    for (int number = 0; number < 2; ++number) {
      tasks.push_back(*carrier.start(
          [&turns, &carrier, number](const std::stop_token&) {
            turns.push_back(number);
            carrier.yield();
            turns.push_back(number);
          },
          {}));
    }
  });
  EXPECT_THAT(turns, ElementsAre(0, 1, 0, 1));
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

TEST_F(WaitsTest, AFiberStaysOnItsThread) {
  std::mutex mutex;
  std::vector<std::set<std::thread::id>> threads(2);
  for (int on = 0; on < 8; ++on) {
    start(on, [&, on] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(Carrier::current().shared());
        {
          const std::scoped_lock lock(mutex);
          threads.at(static_cast<std::size_t>(on % 2)).insert(std::this_thread::get_id());
        }
        Carrier::current().yield();
      }
    });
  }
  end();
  EXPECT_EQ(threads[0].size(), 1U);
  EXPECT_EQ(threads[1].size(), 1U);
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_FALSE(Carrier::current().shared());
  for (int thread = 0; thread < pool_->threads(); ++thread) {
    EXPECT_GT(pool_->cpu_time(thread), Duration::zero());
  }
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

TimePoint at(Duration time) { return TimePoint{} + time; }

class TimersTest : public testing::Test {
 protected:
  /// Which timers expire now.
  std::vector<std::size_t> expired(Duration now) {
    std::vector<std::size_t> which;
    timers_.expire(at(now), [&](const Timed& timed) {
      which.push_back(static_cast<std::size_t>(&timed - timed_.data()));
    });
    return which;
  }

  std::vector<Timed> timed_ = std::vector<Timed>(100);
  Timers timers_;
};

TEST_F(TimersTest, CountTheLatestDeadlineOnly) {
  timers_.arm(timed_[0], at(1s));
  timers_.arm(timed_[0], at(5s));
  timers_.arm(timed_[1], at(3s));
  timers_.arm(timed_[2], at(2s));
  EXPECT_THAT(expired(4s), ElementsAre(2, 1)) << "in the order of their deadlines";
  EXPECT_TRUE(timed_[1].expired);
  EXPECT_FALSE(timed_[0].expired);
  EXPECT_EQ(timers_.next(), at(5s));
  timers_.arm(timed_[0], at(4500ms));
  EXPECT_EQ(timers_.next(), at(4500ms));
  Timers::disarm(timed_[0]);
  EXPECT_THAT(expired(10s), ElementsAre());
  EXPECT_EQ(timers_.next(), TimePoint::max());
}

TEST_F(TimersTest, AgreeWithALookAtAllDeadlines) {
  std::mt19937 random(7);
  std::vector<Duration> deadlines(timed_.size(), Duration::max());
  for (Duration now = 0s; now < 5000ms; now += 1ms) {
    for (int change = 0; change < 5; ++change) {
      const std::size_t which = random() % timed_.size();
      const std::uint32_t kind = random() % 8;
      if (kind > 1) {
        deadlines[which] = now + (1 + random() % 100) * 1ms;
        timers_.arm(timed_[which], at(deadlines[which]));
        continue;
      }
      deadlines[which] = Duration::max();
      if (kind == 0) timers_.remove(timed_[which]);
      Timers::disarm(timed_[which]);
    }
    std::vector<std::size_t> due;
    for (std::size_t which = 0; which < timed_.size(); ++which) {
      if (deadlines[which] > now) continue;
      due.push_back(which);
      deadlines[which] = Duration::max();
    }
    ASSERT_THAT(expired(now), testing::UnorderedElementsAreArray(due)) << now.count();
  }
}

}  // namespace
}  // namespace lockbench::fibers
