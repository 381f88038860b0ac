// What becomes of servers when the process that started them ends in one way or another.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

constexpr int kPatienceMs = std::chrono::milliseconds(test::kPatience).count();

/// This program again, as a parent with a testbed and one server, in a process group of its own.
class Parent {
 public:
  Parent() {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe2");
    }
    std::string program = own_path();
    std::string role = "--hold-a-server";
    std::array<char*, 3> argv{program.data(), role.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawn(&pid_, argv[0], &files, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    stdout_ = out[0];
    if (error != 0) throw std::runtime_error("posix_spawn");
    std::istringstream(read_line()) >> server >> supervisor >> port >> folder;
  }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;
  ~Parent() {
    close(stdin_);
    close(stdout_);
    kill_hard();
  }

  void kill_hard() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  /// Lets the parent end by itself; its exit status.
  int finish() {
    close(stdin_);
    stdin_ = -1;
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

  pid_t pid() const { return pid_; }

  /// The next line, empty if none comes.
  std::string read_line() const {
    std::string line;
    char c = 0;
    pollfd file{stdout_, POLLIN, 0};
    while (poll(&file, 1, kPatienceMs) > 0 && read(stdout_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }

  /// No process holds the parent's stdout any more, so that whoever reads it does not hang.
  bool stdout_is_closed() const {
    pollfd file{stdout_, POLLIN, 0};
    char c = 0;
    return poll(&file, 1, kPatienceMs) > 0 && read(stdout_, &c, 1) == 0;
  }

  pid_t server = 0;
  pid_t supervisor = 0;
  std::uint16_t port = 0;
  std::string folder;

 private:
  pid_t pid_ = 0;
  int stdin_ = -1;
  int stdout_ = -1;
};

bool all_gone(const Parent& parent) {
  return has_ended(parent.server) && has_ended(parent.supervisor) &&
         !std::filesystem::exists(parent.folder);
}

TEST(Parent, TakesServersAndFolderWithItWhenKilled) {
  Parent parent;
  ASSERT_FALSE(parent.folder.empty());
  ASSERT_EQ(ask(parent.port, "PING"), "+PONG");
  ASSERT_TRUE(std::filesystem::exists(parent.folder));
  parent.kill_hard();
  EXPECT_TRUE(parent.stdout_is_closed());
  EXPECT_TRUE(eventually([&] { return all_gone(parent); }));
}

TEST(Parent, TakesAFrozenServerWithItToo) {
  Parent parent;
  ASSERT_FALSE(parent.folder.empty());
  ASSERT_EQ(kill(parent.server, SIGSTOP), 0);
  parent.kill_hard();
  EXPECT_TRUE(eventually([&] { return all_gone(parent); }));
}

TEST(Parent, LeavesNothingBehindWhenItEndsByItself) {
  Parent parent;
  ASSERT_FALSE(parent.folder.empty());
  EXPECT_EQ(parent.finish(), 0);
  EXPECT_TRUE(all_gone(parent));
}

TEST(Parent, KeepsItsServersThroughCtrlC) {
  const Parent parent;
  ASSERT_FALSE(parent.folder.empty());
  ASSERT_EQ(kill(-parent.pid(), SIGINT), 0);
  EXPECT_EQ(parent.read_line(), "interrupted");
  EXPECT_EQ(ask(parent.port, "PING"), "+PONG");
  // The reason why, which no slow server can hide: a terminal signals one group of one session.
  EXPECT_NE(getsid(parent.supervisor), getsid(parent.pid()));
  EXPECT_NE(getpgid(parent.server), getpgid(parent.pid()));
  EXPECT_NE(getsid(parent.server), getsid(parent.pid()));
}

TEST(Parent, LosesItsServersWithTheSupervisor) {
  Parent parent;
  ASSERT_FALSE(parent.folder.empty());
  ASSERT_EQ(kill(parent.supervisor, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return has_ended(parent.server); }));
  EXPECT_EQ(parent.finish(), 0);
  EXPECT_TRUE(all_gone(parent));
}

}  // namespace
}  // namespace lockbench::testbed
