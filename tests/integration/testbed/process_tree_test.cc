#include "testbed/process/process_tree.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "testbed/servers/machine.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

TEST(ProcessTree, CpuIsReadWhateverTheProcessIsCalled) {
  const auto cpu = parse_process_cpu(
      "42 (a ) b) S 1 42 42 0 -1 4194560 500 600 0 0 150 50 30 10 20 0 1 0 12345", 100);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(cpu->own_seconds, 2);
  EXPECT_DOUBLE_EQ(cpu->children_seconds, 0.4);
}

void burn(double seconds) {
  const double until = static_cast<double>(clock()) / CLOCKS_PER_SEC + seconds;
  while (static_cast<double>(clock()) / CLOCKS_PER_SEC < until) continue;
}

/// A process that runs `body` and then waits to be killed; it ends with the test at the latest.
template <class Body>
pid_t start_process(Body body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  while (true) pause();
}

void kill_and_reap(pid_t pid) {
  signal_tree(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(ProcessTree, CpuIsThatOfDescendantsAndOfThoseThatEnded) {
  const pid_t leader = start_process([] {
    setpgid(0, 0);
    start_process([] { burn(0.1); });
    const pid_t ending = fork();
    if (ending == 0) {
      burn(0.1);
      _exit(0);
    }
    waitpid(ending, nullptr, 0);
    burn(0.1);
  });
  // The kernel rounds each of the three down to its tick.
  EXPECT_TRUE(eventually([&] { return cpu_seconds_of_tree(leader).value_or(0) >= 0.24; }))
      << cpu_seconds_of_tree(leader).value_or(-1);
  kill_and_reap(leader);
  EXPECT_FALSE(cpu_seconds_of_tree(leader)) << "it has ended";
}

TEST(ProcessTree, ProcessesThatEndWhileLookedAtAreNoError) {
  constexpr int kLooks = 2000;
  const pid_t leader = start_process([] {
    setpgid(0, 0);
    while (true) {
      const pid_t ending = fork();
      if (ending == 0) _exit(0);
      waitpid(ending, nullptr, 0);
    }
  });
  for (int look = 0; look < kLooks; ++look) ASSERT_TRUE(cpu_seconds_of_tree(leader));
  kill_and_reap(leader);
}

TEST(OpenFiles, LimitIsRaisedUpToTheHardOneAndNeverLowered) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 100;
  setrlimit(RLIMIT_NOFILE, &low);
  EXPECT_EQ(raise_open_file_limit(50), 100U);
  EXPECT_EQ(raise_open_file_limit(200), 200U);
  const auto raised = raise_open_file_limit(before.rlim_max + 1);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(raised);
  EXPECT_NE(raised.error().find(std::to_string(before.rlim_max + 1)), std::string::npos);
  EXPECT_NE(raised.error().find(std::to_string(before.rlim_max)), std::string::npos);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace lockbench::testbed
