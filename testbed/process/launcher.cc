#include "testbed/process/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace lockbench::testbed {
namespace {

/// The step that failed in the child, sent to its parent by a pipe that a successful exec closes.
struct Failure {
  int error = 0;
  std::array<char, 32> step{};
};

[[noreturn]] void give_up(int pipe, const char* step) {
  Failure failure;
  failure.error = errno;
  std::strncpy(failure.step.data(), step, failure.step.size() - 1);
  // If even this fails the parent still sees the exit status.
  [[maybe_unused]] const ssize_t written = write(pipe, &failure, sizeof failure);
  _exit(127);
}

void reset_signals() {
  for (int signo = 1; signo < NSIG; ++signo) std::signal(signo, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void become(const passwd& user, int pipe) {
  if (initgroups(user.pw_name, user.pw_gid) != 0) give_up(pipe, "initgroups");
  if (setgid(user.pw_gid) != 0) give_up(pipe, "setgid");
  if (setuid(user.pw_uid) != 0) give_up(pipe, "setuid");
}

void redirect(const LaunchSpec& spec, int pipe) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log =
      open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (nothing < 0 || log < 0) give_up(pipe, "open the log");
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
      dup2(log, STDERR_FILENO) < 0) {
    give_up(pipe, "redirect");
  }
}

[[noreturn]] void run_child(const LaunchSpec& spec, const passwd* user, pid_t parent, int pipe) {
  if (setpgid(0, 0) != 0) give_up(pipe, "setpgid");
  if (user != nullptr) become(*user, pipe);
  // As the user: the log is in a folder of its own.
  redirect(spec, pipe);
  // After setuid, which would clear it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(pipe, "prctl");
  if (getppid() != parent) _exit(127);
  if (chdir(spec.folder.c_str()) != 0) give_up(pipe, "chdir");
  reset_signals();

  std::vector<char*> argv;
  for (const std::string& argument : spec.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  give_up(pipe, "exec");
}

}  // namespace

tl::expected<pid_t, std::string> launch(const LaunchSpec& spec) {
  const passwd* user = nullptr;
  if (!spec.user.empty()) {
    user = getpwnam(spec.user.c_str());
    if (user == nullptr) return tl::unexpected(fmt::format("no such user: {}", spec.user));
  }
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return tl::unexpected(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) run_child(spec, user, parent, pipe[1]);
  const int fork_error = errno;
  close(pipe[1]);
  if (child < 0) {
    close(pipe[0]);
    return tl::unexpected(fmt::format("fork: {}", std::strerror(fork_error)));
  }
  Failure failure;
  ssize_t got = 0;
  do {
    got = read(pipe[0], &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  close(pipe[0]);
  if (got == 0) return child;
  waitpid(child, nullptr, 0);
  return tl::unexpected(fmt::format("cannot start {}: {}: {}", spec.argv.front(),
                                    failure.step.data(), std::strerror(failure.error)));
}

}  // namespace lockbench::testbed
