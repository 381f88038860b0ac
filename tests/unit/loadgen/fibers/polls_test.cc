#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "tests/unit/loadgen/fibers/pool_fixture.h"

namespace lockbench::fibers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two ends of a non-blocking connection, or of a pipe: [0] reads, [1] writes.
class Pair {
 public:
  enum class Kind { socket, pipe };
  explicit Pair(Kind kind = Kind::socket) {
    const int made =
        kind == Kind::pipe
            ? ::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC)
            : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data());
    EXPECT_EQ(made, 0);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    close(0);
    close(1);
  }

  int operator[](std::size_t end) const { return ends_.at(end); }
  void close(std::size_t end) {
    if (ends_.at(end) >= 0) ::close(std::exchange(ends_.at(end), -1));
  }
  void write() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool awaits(int fd, short events, Duration longest = kBound, const std::stop_token& stop = {}) {
  pollfd polled{.fd = fd, .events = events, .revents = 0};
  Carrier::current().poll({&polled, 1}, longest, stop);
  return (polled.revents & events) != 0;
}

/// Reads; 0: the end; -1: nothing now.
ssize_t take(int fd) {
  std::array<char, 4096> bytes{};
  return ::read(fd, bytes.data(), bytes.size());
}

/// Reads like a client: waits until something is reported, which may be gone again.
ssize_t receive(int fd) {
  const TimePoint latest = bound();
  while (Carrier::current().now() < latest) {
    if (!awaits(fd, POLLIN)) continue;
    if (const ssize_t got = take(fd); got >= 0) return got;
  }
  return -1;
}

/// With and without a kept descriptor: waits must behave the same.
class PollsTest : public PoolTest, public testing::WithParamInterface<bool> {
 protected:
  ~PollsTest() override { end(); }
  static void prepare(int fd) {
    if (GetParam()) Carrier::current().keep(fd);
  }
};

INSTANTIATE_TEST_SUITE_P(Both, PollsTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Kept" : "NotKept"; });

TEST(LateTurns, AnAnswerThatWaitsForAnotherFibersTurnIsNoticed) {
  constexpr int kRounds = 24;
  constexpr Duration kTurn = 1ms;
  Duration longest{};  // used on the pool's only thread until that has ended
  std::unique_ptr<Pool> pool =
      Pool::make(1, {}, [&](Duration late) { longest = std::max(longest, late); }).value();
  const Pair one, other;
  int received = 0;
  const auto client = [&](const Pair& pair) {
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(receive(pair[0]), 1);
      const TimePoint until = Carrier::current().now() + kTurn;
      while (Carrier::current().now() < until) {
      }
      ++received;
    }
  };
  const auto server = [&] {
    for (int round = 1; round <= kRounds; ++round) {
      one.write();
      other.write();
      while (received < 2 * round) Carrier::current().yield();
    }
  };
  std::vector<std::unique_ptr<Task>> tasks;
  for (const std::function<void()>& body :
       {std::function<void()>([&] { client(one); }), std::function<void()>([&] { client(other); }),
        std::function<void()>(server)}) {
    tasks.push_back(pool->start(
                            0, [body](const std::stop_token&) { body(); },
                            [](const std::string& why) { ADD_FAILURE() << why; })
                        .value());
  }
  tasks.clear();
  pool.reset();
  EXPECT_GE(longest, kTurn / 4) << "of the three turns after a look, the last comes late";
}

TEST_P(PollsTest, TheEndIsSeenAfterTheLastData) {
  Pair pair;
  run([&] {
    prepare(pair[0]);
    pair.write();
    pair.close(1);
    EXPECT_EQ(receive(pair[0]), 1);
    EXPECT_EQ(receive(pair[0]), 0);
    EXPECT_EQ(receive(pair[0]), 0);
  });
}

TEST_P(PollsTest, AFullConnectionIsWaitedForUntilItIsRead) {
  const Pair pair;
  const std::string much(1 << 20, 'x');
  start(0, [&] {
    prepare(pair[1]);
    for (std::size_t sent = 0; sent < much.size();) {
      const ssize_t more = ::write(pair[1], much.data() + sent, much.size() - sent);
      if (more > 0) {
        sent += static_cast<std::size_t>(more);
      } else if (!awaits(pair[1], POLLOUT)) {
        return;
      }
    }
  });
  std::atomic<std::size_t> received{0};
  start(0, [&] {
    prepare(pair[0]);
    while (received < much.size()) {
      if (!awaits(pair[0], POLLIN)) return;
      for (ssize_t got = take(pair[0]); got > 0; got = take(pair[0])) {
        received += static_cast<std::size_t>(got);
      }
    }
  });
  end();
  EXPECT_EQ(received, much.size());
}

TEST_P(PollsTest, WhoMayWriteIsToldSoEachTime) {
  const Pair pair;
  run([&] {
    prepare(pair[1]);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(awaits(pair[1], POLLOUT));
      pair.write();
    }
  });
}

TEST_P(PollsTest, WhatWasWrittenBeforeAWaitToWriteIsStillSeen) {
  const Pair pair;
  run([&] {
    prepare(pair[0]);
    pair.write();
    EXPECT_TRUE(awaits(pair[0], POLLOUT));
    EXPECT_EQ(receive(pair[0]), 1);
    EXPECT_FALSE(awaits(pair[0], POLLIN, 1ms) && take(pair[0]) >= 0);
    const auto writer = Carrier::current().start([&](const auto&) { pair.write(); }, {});
    EXPECT_EQ(receive(pair[0]), 1);
  });
}

TEST_P(PollsTest, LastsUntilTheTimeIsOver) {
  const Pair pair;
  run([&] {
    prepare(pair[0]);
    const TimePoint begin = Carrier::current().now();
    EXPECT_FALSE(awaits(pair[0], POLLIN, 3ms));
    EXPECT_GE(Carrier::current().now() - begin, 3ms);
    EXPECT_FALSE(awaits(pair[0], POLLIN, 0s));
    pair.write();
    EXPECT_TRUE(awaits(pair[0], POLLIN, 0s));
  });
}

TEST_P(PollsTest, AStopEndsIt) {
  const Pair pair;
  std::stop_source stop;
  const auto waiting = Carrier::current().make_event();
  start(0, [&] {
    prepare(pair[0]);
    waiting->set();
    EXPECT_FALSE(awaits(pair[0], POLLIN, kBound, stop.get_token()));
    EXPECT_TRUE(stop.stop_requested());
  });
  EXPECT_EQ(Carrier::current().wait(waiting.get(), bound(), {}), WaitResult::signalled);
  stop.request_stop();
  end();
}

TEST_P(PollsTest, OneOfSeveralIsEnough) {
  const Pair first, third;
  const Pair second(Pair::Kind::pipe);
  run([&] {
    prepare(first[0]);
    const auto writer = Carrier::current().start([&](const auto&) { second.write(); }, {});
    std::array<pollfd, 4> polled{{{.fd = first[0], .events = POLLIN, .revents = 0},
                                  {.fd = second[0], .events = POLLIN, .revents = 0},
                                  {.fd = -1, .events = POLLIN, .revents = 1},
                                  {.fd = third[0], .events = POLLIN, .revents = 0}}};
    Carrier::current().poll(polled, kBound, {});
    EXPECT_EQ(polled[0].revents, 0);
    EXPECT_EQ(polled[1].revents, POLLIN);
    EXPECT_EQ(polled[2].revents, 0);
    EXPECT_EQ(polled[3].revents, 0);
  });
}

TEST_P(PollsTest, OneFiberMayReadWhatAnotherOneWrites) {
  const Pair pair;
  std::atomic<int> done{0};
  const auto started = Carrier::current().make_event();
  start(0, [&] {
    prepare(pair[0]);
    started->set();
    done += receive(pair[0]) == 1 ? 1 : 0;
  });
  EXPECT_EQ(Carrier::current().wait(started.get(), bound(), {}), WaitResult::signalled);
  start(0, [&] {
    done += awaits(pair[0], POLLOUT) ? 1 : 0;
    pair.write();
  });
  end();
  EXPECT_EQ(done, 2);
}

TEST_P(PollsTest, TwoFibersThatReadTheSameAreAnError) {
  const Pair pair;
  const auto started = Carrier::current().make_event();
  start(0, [&] {
    prepare(pair[0]);
    started->set();
    EXPECT_EQ(receive(pair[0]), 1);
  });
  EXPECT_EQ(Carrier::current().wait(started.get(), bound(), {}), WaitResult::signalled);
  start(0, [&] { awaits(pair[0], POLLIN); });
  tasks_.pop_back();
  EXPECT_THAT(failures_, ElementsAre(HasSubstr("two fibers")));
  pair.write();
  end();
}

TEST_P(PollsTest, ANumberMayBeUsedAgainAfterItWasClosedByAnotherThread) {
  for (int round = 0; round < 20; ++round) {
    Pair old;
    const Pair fresh;
    const int number = old[0];
    Carrier* carrier = nullptr;
    start(0, [&] {
      carrier = &Carrier::current();
      prepare(number);
      old.write();
      EXPECT_EQ(receive(number), 1);
      old.close(1);  // its end is reported but not read
    });
    end();
    carrier->forget(number);
    old.close(0);
    ASSERT_EQ(::dup3(fresh[0], number, O_CLOEXEC), number);
    start(0, [&] {
      prepare(number);
      EXPECT_FALSE(awaits(number, POLLIN, 1ms) && take(number) >= 0) << "nothing was written yet";
      const auto writer = Carrier::current().start([&](const auto&) { fresh.write(); }, {});
      EXPECT_EQ(receive(number), 1);
      Carrier::current().forget(number);
    });
    end();
    ::close(number);
  }
  EXPECT_THAT(failures_, IsEmpty());
}

using MorePollsTest = PoolTest;

/// For this thread and threads that it starts. False if the machine does not allow it.
bool forbid_epoll_pwait2() {
  std::array code{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = code.size(), .filter = code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As before Linux 5.11 and in sandboxes.
TEST_F(MorePollsTest, FibersWaitWithoutEpollPwait2) {
  const Pair pair;
  std::thread([&] {
    ASSERT_TRUE(forbid_epoll_pwait2());
    ASSERT_EQ(::syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0), -1);
    ASSERT_EQ(errno, ENOSYS);
    pool_ = Pool::make(1).value();
    start(0, [&] {
      // A kept descriptor is ready only once epoll has reported it.
      Carrier::current().keep(pair[0]);
      EXPECT_TRUE(awaits(pair[0], POLLIN));
      Carrier::current().forget(pair[0]);
    });
    start(0, [&] {
      const TimePoint begin = Carrier::current().now();
      EXPECT_EQ(Carrier::current().wait(nullptr, begin + 300us, {}), WaitResult::timed_out);
      EXPECT_GE(Carrier::current().now() - begin, 300us);
      pair.write();
    });
    end();
  }).join();
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(MorePollsTest, ReportWhatIsNotOpenAtOnce) {
  const Pair pair;
  const int number = ::dup(pair[0]);
  ::close(number);
  run([&] {
    pollfd polled{.fd = number, .events = POLLIN, .revents = 0};
    Carrier::current().poll({&polled, 1}, kBound, {});
    EXPECT_EQ(polled.revents, POLLNVAL);
  });
}

}  // namespace
}  // namespace lockbench::fibers
