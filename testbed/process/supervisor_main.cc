// lockbench-supervisor FOLDER: starts servers for the process at the other end of stdin and stdout
// (see wire.h). When that process ends, even if it is killed, stops them and removes FOLDER.

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "testbed/process/launcher.h"
#include "testbed/process/process_tree.h"
#include "testbed/process/remains.h"
#include "testbed/process/wire.h"

namespace lockbench::testbed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFinalGrace{3000};     // from asking all servers to end to killing them
constexpr milliseconds kFinalPatience{2000};  // from killing them to leaving without them

template <typename Integer>
std::optional<Integer> parse(const std::string& text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One server: a process that has not been reaped, so its pid and group cannot have been reused.
struct Child {
  pid_t pid = 0;
  int stop_signal = SIGTERM;
  std::optional<Clock::time_point> kill_at;
};

class Supervision {
 public:
  explicit Supervision(int child_events) : child_events_(child_events) {}

  /// Returns when the other side has closed the connection.
  void serve();
  /// Stops all processes, within kFinalGrace + kFinalPatience.
  void stop_all();

 private:
  /// False: the other side has closed the connection.
  bool read_command();
  void obey(const std::vector<std::string>& fields);
  void start(const std::vector<std::string>& fields);
  void reap();
  void kill_overdue();
  static void kill_orphans();
  static void ask_to_end(const Child& child);
  void wait_for_children(Clock::time_point until, bool orphans_too);
  milliseconds time_to_next_kill() const;
  Child* find(const std::string& id);

  static void tell(const std::vector<std::string>& fields);

  int child_events_;  // a signalfd for SIGCHLD
  std::map<std::uint64_t, Child> children_;
};

void Supervision::tell(const std::vector<std::string>& fields) {
  // If the other side is gone, stdin will show that too.
  (void)wire::send(STDOUT_FILENO, fields);
}

Child* Supervision::find(const std::string& id) {
  const auto number = parse<std::uint64_t>(id);
  const auto found = number ? children_.find(*number) : children_.end();
  return found == children_.end() ? nullptr : &found->second;
}

void Supervision::start(const std::vector<std::string>& fields) {
  constexpr std::size_t kArgv = 6;
  const auto id = parse<std::uint64_t>(fields[1]);
  const int stop_signal = fields.size() > kArgv ? parse<int>(fields[5]).value_or(0) : 0;
  if (!id || stop_signal <= 0) return tell({"failed", fields[1], "malformed start"});
  const LaunchSpec spec{.argv = {fields.begin() + kArgv, fields.end()},
                        .log = fields[2],
                        .folder = fields[3],
                        .user = fields[4],
                        .stop_signal = stop_signal};
  const auto pid = launch(spec);
  if (!pid) return tell({"failed", fields[1], pid.error()});
  children_[*id] = Child{*pid, stop_signal, std::nullopt};
  tell({"started", fields[1], std::to_string(*pid)});
}

void Supervision::ask_to_end(const Child& child) {
  kill(-child.pid, child.stop_signal);
  signal_tree(child.pid, SIGCONT);  // a frozen server cannot handle the signal
}

void Supervision::obey(const std::vector<std::string>& fields) {
  if (fields.size() < 2) return;
  const std::string& verb = fields[0];
  const std::string& id = fields[1];
  if (verb == "start") return start(fields);
  Child* child = fields.size() == 4 ? find(fields[2]) : nullptr;
  if (child == nullptr) return tell({"failed", id, "the process has ended"});
  const auto number = parse<int>(fields[3]);
  if (verb == "signal" && number) {
    const bool sent = signal_tree(child->pid, *number);
    return tell(sent ? std::vector<std::string>{"ok", id}
                     : std::vector<std::string>{"failed", id, "the signal cannot be sent"});
  }
  if (verb == "stop" && number) {
    child->kill_at = Clock::now() + milliseconds(*number);
    ask_to_end(*child);
    return tell({"ok", id});
  }
  tell({"failed", id, "unknown command"});
}

bool Supervision::read_command() {
  const auto fields = wire::receive(STDIN_FILENO);
  if (fields) obey(*fields);
  return fields.has_value();
}

void Supervision::reap() {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    info = {};
    const auto is_it = [pid](const auto& entry) { return entry.second.pid == pid; };
    const auto found = std::find_if(children_.begin(), children_.end(), is_it);
    // Until the leader is reaped its group id cannot be reused: kill what it left behind.
    if (found != children_.end()) kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    if (found == children_.end()) continue;  // an orphan that was reparented to this process
    tell({"exited", std::to_string(found->first)});
    children_.erase(found);
  }
}

void Supervision::kill_overdue() {
  for (auto& [id, child] : children_) {
    if (!child.kill_at || *child.kill_at > Clock::now()) continue;
    signal_tree(child.pid, SIGKILL);
    child.kill_at.reset();
  }
}

milliseconds Supervision::time_to_next_kill() const {
  milliseconds wait = std::chrono::minutes(1);
  for (const auto& [id, child] : children_) {
    if (!child.kill_at) continue;
    wait = std::min(wait, std::chrono::ceil<milliseconds>(*child.kill_at - Clock::now()));
  }
  return std::max(wait, milliseconds(0));
}

void Supervision::serve() {
  bool connected = true;
  while (connected) {
    std::array<pollfd, 2> files{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{child_events_, POLLIN, 0}};
    const int ready =
        poll(files.data(), files.size(), static_cast<int>(time_to_next_kill().count()));
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && files[1].revents != 0) {
      signalfd_siginfo ignored{};
      [[maybe_unused]] const ssize_t got = read(child_events_, &ignored, sizeof ignored);
    }
    reap();
    kill_overdue();
    if (ready > 0 && files[0].revents != 0) connected = read_command();
  }
}

/// Kills server processes that left their group and whose parent has ended. They are our direct
/// children now (see PR_SET_CHILD_SUBREAPER) and not reaped, so their pids cannot have been reused.
void Supervision::kill_orphans() {
  const std::string self = std::to_string(getpid());
  std::ifstream list("/proc/" + self + "/task/" + self + "/children");
  for (pid_t pid = 0; list >> pid;) kill(pid, SIGKILL);
}

void Supervision::wait_for_children(Clock::time_point until, bool orphans_too) {
  while (Clock::now() < until) {
    reap();
    if (orphans_too) kill_orphans();
    siginfo_t info{};
    const bool none_at_all = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
    if (none_at_all || (!orphans_too && children_.empty())) return;
    // There is no notice of new orphans, so look again periodically.
    pollfd events{child_events_, POLLIN, 0};
    if (poll(&events, 1, orphans_too ? 5 : 50) <= 0) continue;
    signalfd_siginfo ignored{};
    [[maybe_unused]] const ssize_t got = read(child_events_, &ignored, sizeof ignored);
  }
}

void Supervision::stop_all() {
  for (const auto& [id, child] : children_) ask_to_end(child);
  wait_for_children(Clock::now() + kFinalGrace, false);
  for (const auto& [id, child] : children_) signal_tree(child.pid, SIGKILL);
  wait_for_children(Clock::now() + kFinalPatience, true);
}

/// Detaches from the terminal and closes inherited files.
int detach() {
  setsid();  // fails if the parent has called it for this process already
  close_range(3, ~0U, 0);
  if (chdir("/") != 0) return -1;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signo : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signo, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child, nullptr);
  return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace
}  // namespace lockbench::testbed

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] != '/') {
    std::fputs("usage: lockbench-supervisor FOLDER (an absolute path; started by lockbench)\n",
               stderr);
    return 1;
  }
  const int child_events = lockbench::testbed::detach();
  if (child_events < 0) return 2;
  lockbench::testbed::Supervision supervisor(child_events);
  supervisor.serve();
  supervisor.stop_all();
  std::error_code error;
  lockbench::testbed::remove_remains(argv[1], error);
  return error ? 2 : 0;
}
