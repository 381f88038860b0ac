#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "tests/unit/loadgen/fibers/pool_fixture.h"

namespace lockbench::fibers {
namespace {

/// For this thread, and those that it starts. False if the machine does not let us.
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

// As before Linux 5.11, and in sandboxes.
TEST(OldKernel, FibersWaitWithoutEpollPwait2) {
  std::thread([] {
    ASSERT_TRUE(forbid_epoll_pwait2());
    ASSERT_EQ(::syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0), -1);
    ASSERT_EQ(errno, ENOSYS);
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    const auto pool = Pool::make(1);
    ASSERT_TRUE(pool) << pool.error();
    const auto on_failure = [](const std::string& why) { ADD_FAILURE() << why; };
    Duration slept{};
    bool readable = false;
    auto reader = (*pool)->start(
        0,
        [&](const std::stop_token&) {
          // What is kept is ready only once epoll has said so.
          Carrier& carrier = Carrier::current();
          carrier.keep(ends[0]);
          pollfd polled{.fd = ends[0], .events = POLLIN, .revents = 0};
          carrier.poll({&polled, 1}, kBound, {});
          readable = (polled.revents & POLLIN) != 0;
          carrier.forget(ends[0]);
        },
        on_failure);
    auto sleeper = (*pool)->start(
        0,
        [&](const std::stop_token&) {
          const TimePoint begin = Carrier::current().now();
          EXPECT_EQ(Carrier::current().wait(nullptr, begin + 300us, {}), WaitResult::timed_out);
          slept = Carrier::current().now() - begin;
          EXPECT_EQ(::write(ends[1], "x", 1), 1);
        },
        on_failure);
    ASSERT_TRUE(reader && sleeper);
    sleeper->reset();
    reader->reset();
    EXPECT_GE(slept, 300us);
    EXPECT_TRUE(readable);
    ::close(ends[0]);
    ::close(ends[1]);
  }).join();
}

}  // namespace
}  // namespace lockbench::fibers
