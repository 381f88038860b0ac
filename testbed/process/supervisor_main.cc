// lockbench-supervisor FOLDER: starts servers for the process at the other end of stdin (see
// wire.h). When that process ends, even if it is killed, kills them and removes FOLDER.

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/process_tree.h"
#include "testbed/process/wire.h"

namespace lockbench::testbed {
namespace {

/// Returns the failed step; errno says why. Does not return if the program runs: in its own group,
/// with default signal handling, an empty signal mask and no inherited files.
const char* become(const LaunchSpec& spec, const passwd* user, pid_t parent) {
  if (setpgid(0, 0) != 0) return "setpgid";
  if (user != nullptr) {
    if (initgroups(user->pw_name, user->pw_gid) != 0) return "initgroups";
    if (setgid(user->pw_gid) != 0) return "setgid";
    if (setuid(user->pw_uid) != 0) return "setuid";
  }
  // After setuid: the log is in a folder of that user.
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log =
      open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (nothing < 0 || log < 0) return "open the log";
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
      dup2(log, STDERR_FILENO) < 0) {
    return "redirect";
  }
  // The server dies with the supervisor. After setuid, which would clear this.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  if (getppid() != parent) _exit(127);
  if (chdir(spec.folder.c_str()) != 0) return "chdir";
  for (int signo = 1; signo < NSIG; ++signo) std::signal(signo, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  std::vector<char*> argv;
  for (const std::string& argument : spec.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  return "exec";
}

/// Returns once the program runs.
tl::expected<pid_t, std::string> launch(const LaunchSpec& spec) {
  const passwd* const user = spec.user.empty() ? nullptr : getpwnam(spec.user.c_str());
  if (user == nullptr && !spec.user.empty()) {
    return tl::unexpected(fmt::format("no such user: {}", spec.user));
  }
  std::array<int, 2> pipe{};  // a successful exec closes it
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return tl::unexpected(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const char* const step = become(spec, user, parent);
    dprintf(pipe[1], "%s: %s", step, std::strerror(errno));
    _exit(127);
  }
  const int fork_error = errno;
  close(pipe[1]);
  std::array<char, 128> problem{};
  const ssize_t size = read(pipe[0], problem.data(), problem.size() - 1);
  close(pipe[0]);
  if (child < 0) return tl::unexpected(fmt::format("fork: {}", std::strerror(fork_error)));
  if (size <= 0) return child;
  waitpid(child, nullptr, 0);
  return tl::unexpected(fmt::format("cannot start {}: {}", spec.argv.front(), problem.data()));
}

/// One server: a process not reaped yet, so its pid and group cannot have been reused.
struct Child {
  pid_t pid;
  int socket;  ///< -1: the testbed has hung up
  /// Killed with it, and not reaped yet. Until then they may hold its port and write its files.
  std::set<pid_t> dying{};
  bool reaped = false;
};

using Children = std::vector<Child>;

/// False if the other side has closed the connection.
bool start(Children& children) {
  constexpr std::size_t kArgv = 3;
  int socket = -1;
  const auto fields = wire::receive(STDIN_FILENO, &socket);
  if (!fields) return false;
  // Without the socket, as with too many open files, the process could never be ended.
  if (fields->size() <= kArgv || socket < 0) return true;
  const auto pid = launch({.argv = {fields->begin() + kArgv, fields->end()},
                           .log = fields->at(0),
                           .folder = fields->at(1),
                           .user = fields->at(2)});
  if (pid) {
    children.push_back({*pid, socket});
    // If this fails, the other side is gone, which the sockets will show too.
    (void)wire::send(socket, {"", std::to_string(*pid)});
  } else {
    (void)wire::send(socket, {pid.error()});
    close(socket);
  }
  return true;
}

void obey(Child& child) {
  const auto fields = wire::receive(child.socket);
  const int signo = fields ? std::atoi(fields->front().c_str()) : SIGKILL;
  // Its pid may be another process's once it is reaped.
  const auto signalled = child.reaped ? std::nullopt : signal_tree(child.pid, signo);
  if (signalled && signo == SIGKILL) child.dying.insert(signalled->begin(), signalled->end());
  if (!fields) {
    close(child.socket);
    child.socket = -1;
    return;
  }
  (void)wire::send(child.socket, {signalled ? "" : "the signal cannot be sent"});
}

/// False if nothing is left to reap.
bool reap(Children& children) {
  siginfo_t info{};
  int found = 0;
  while ((found = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    info = {};
    const auto child = std::ranges::find_if(
        children, [&](const Child& one) { return one.pid == pid && !one.reaped; });
    // Kills the rest of the group: until the leader is reaped, its group id cannot be reused.
    if (child != children.end()) kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    // Orphans become children of this process.
    for (Child& one : children) one.dying.erase(pid);
    if (child != children.end()) child->reaped = true;
    std::erase_if(children, [](const Child& one) {
      const bool gone = one.reaped && one.dying.empty();
      if (gone && one.socket >= 0) close(one.socket);
      return gone;
    });
  }
  return found == 0;
}

/// Serves requests until the other side closes the connection.
void serve(Children& children) {
  sigset_t all_but_child;  // blocked while it waits
  sigfillset(&all_but_child);
  sigdelset(&all_but_child, SIGCHLD);
  bool connected = true;
  while (connected) {
    std::vector<pollfd> files{{STDIN_FILENO, POLLIN, 0}};
    for (const Child& child : children) files.push_back({child.socket, POLLIN, 0});
    if (ppoll(files.data(), files.size(), nullptr, &all_but_child) > 0) {
      for (std::size_t i = 0; i < children.size(); ++i) {
        if (files[i + 1].revents != 0) obey(children[i]);
      }
      if (files.front().revents != 0) connected = start(children);
    } else if (errno != EINTR) {
      return;
    }
    reap(children);
  }
}

/// Kills all processes, and returns when they are gone, at the latest after kPatience.
void kill_all(Children& children) {
  constexpr std::chrono::seconds kPatience{5};
  for (const Child& child : children) {
    if (!child.reaped) signal_tree(child.pid, SIGKILL);
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const std::string orphans = fmt::format("/proc/{0}/task/{0}/children", getpid());
  while (reap(children) && std::chrono::steady_clock::now() < until) {
    // Processes that left their group and lost their parent are our children now (see
    // PR_SET_CHILD_SUBREAPER). They are not reaped, so their pids cannot have been reused.
    std::ifstream list(orphans);
    for (pid_t pid = 0; list >> pid;) kill(pid, SIGKILL);
    // Polls, as the kernel does not report new ones.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Drops all that the starting process passed on: files, folder, signal handling. Blocks all
/// signals; only the end of a child interrupts serve() while it waits.
bool detach() {
  close_range(3, ~0U, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  std::signal(SIGCHLD, [](int /*signo*/) {});
  return chdir("/") == 0;
}

}  // namespace
}  // namespace lockbench::testbed

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] != '/') {
    std::fputs("usage: lockbench-supervisor FOLDER (an absolute path; started by lockbench)\n",
               stderr);
    return 1;
  }
  if (!lockbench::testbed::detach()) return 2;
  lockbench::testbed::Children children;
  lockbench::testbed::serve(children);
  lockbench::testbed::kill_all(children);
  std::error_code error;
  lockbench::testbed::remove_remains(argv[1], error);
  return error ? 2 : 0;
}
