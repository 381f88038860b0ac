#include "testbed/process/process_tree.h"

#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

void add_children(pid_t parent, std::set<pid_t>& found) {
  const std::string process = std::to_string(parent);
  std::ifstream list("/proc/" + process + "/task/" + process + "/children");
  for (pid_t pid = 0; list >> pid;) {
    if (found.insert(pid).second) add_children(pid, found);
  }
}

/// Empty if the process is gone. A stream's buffer throws if the process ends during the reading;
/// getline does not.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

/// The part of a stat file after "pid (name) "; names may contain anything. Empty if there is none.
std::string_view after_name(std::string_view stat) {
  const std::size_t end = stat.rfind(") ");
  return end == std::string_view::npos ? std::string_view() : stat.substr(end + 2);
}

/// Sums over the tree; nothing if the leader is gone.
std::optional<ProcessCpu> cpu_of_all(pid_t leader) {
  const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::set<pid_t> all{leader};
  add_children(leader, all);
  ProcessCpu sum;
  for (const pid_t pid : all) {
    const auto cpu =
        parse_process_cpu(text_of("/proc/" + std::to_string(pid) + "/stat"), ticks_per_second);
    if (!cpu && pid == leader) return std::nullopt;
    sum.own_seconds += cpu ? cpu->own_seconds : 0;
    sum.children_seconds += cpu ? cpu->children_seconds : 0;
  }
  return sum;
}

/// Whether this thread has stopped; true if it is gone.
bool stands_still(const fs::path& thread) {
  const std::string text = text_of(thread / "stat");
  const std::string_view state = after_name(text).substr(0, 1);
  return state.empty() || std::string_view("TtZX").find(state) != std::string_view::npos;
}

/// SIGSTOP takes effect on each thread when it next enters the kernel.
void await_stopped(pid_t pid) {
  constexpr int kLooks = 200;
  std::error_code gone;
  for (int look = 0; look < kLooks; ++look) {
    bool all = true;
    fs::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", gone);
    for (; !gone && thread != fs::directory_iterator(); thread.increment(gone)) {
      all = all && stands_still(thread->path());
    }
    if (all) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Stops all descendants, so that none can start another process or be reaped by its parent, and no
/// pid is reused. Call it after stopping the leader.
std::set<pid_t> stop_descendants(pid_t leader) {
  // Bounded, in case the tree grows meanwhile.
  constexpr int kRounds = 10;
  std::set<pid_t> stopped;
  for (int round = 0; round < kRounds; ++round) {
    std::set<pid_t> found;
    add_children(leader, found);
    bool all = true;
    for (const pid_t pid : found) {
      if (!stopped.insert(pid).second) continue;
      kill(pid, SIGSTOP);
      await_stopped(pid);
      all = false;
    }
    if (all) break;
  }
  return stopped;
}

/// PostgreSQL guards its data by a small System V segment. An orderly end removes the segment and
/// this lock file.
constexpr const char* kLockFile = "postmaster.pid";

void remove_segment_of(const fs::path& lock_file) {
  std::ifstream file(lock_file);
  pid_t maker = 0;
  file >> maker;
  constexpr int kLinesBefore = 6;
  std::string skipped, key;
  for (int line = 0; line < kLinesBefore; ++line) std::getline(file, skipped);
  int segment = -1;
  if (!(file >> key >> segment)) return;
  struct stat facts {};
  shmid_ds shared{};
  if (lstat(lock_file.c_str(), &facts) != 0 || shmctl(segment, IPC_STAT, &shared) != 0) return;
  // The file may be wrong: another user's or process's segment stays. initdb writes its pid as a
  // negative number.
  if (shared.shm_perm.uid != facts.st_uid || shared.shm_cpid != std::abs(maker)) return;
  // Dying processes keep it until they are gone.
  static_cast<void>(shmctl(segment, IPC_RMID, nullptr));
}

}  // namespace

std::optional<std::set<pid_t>> signal_tree(pid_t leader, int signo) {
  std::set<pid_t> descendants;
  if (signo == SIGCONT) add_children(leader, descendants);
  if (signo == SIGSTOP || signo == SIGKILL) {
    if (kill(-leader, SIGSTOP) != 0) return std::nullopt;
    await_stopped(leader);
    descendants = stop_descendants(leader);
  }
  if (signo == SIGSTOP) return descendants;
  for (const pid_t pid : descendants) kill(pid, signo);
  if (kill(-leader, signo) != 0) return std::nullopt;
  return descendants;
}

std::optional<ProcessCpu> parse_process_cpu(std::string_view stat, double ticks_per_second) {
  // proc(5): state, ten numbers, then utime, stime, cutime and cstime.
  constexpr int kBefore = 11;
  std::istringstream fields{std::string(after_name(stat))};
  std::string skipped;
  for (int i = 0; i < kBefore; ++i) fields >> skipped;
  double user = 0, system = 0, children_user = 0, children_system = 0;
  fields >> user >> system >> children_user >> children_system;
  if (!fields) return std::nullopt;
  return ProcessCpu{.own_seconds = (user + system) / ticks_per_second,
                    .children_seconds = (children_user + children_system) / ticks_per_second};
}

std::optional<double> cpu_seconds_of_tree(pid_t leader) {
  // PostgreSQL's processes end with their clients. If one ends during a reading, its time moves to
  // its parent's sum and may be missed, so a reading counts only if the next one agrees.
  constexpr int kReadings = 6;
  std::optional<ProcessCpu> reading = cpu_of_all(leader);
  for (int left = kReadings - 1; left > 0 && reading; --left) {
    const std::optional<ProcessCpu> next = cpu_of_all(leader);
    if (next && next->children_seconds == reading->children_seconds) break;
    reading = next;
  }
  if (!reading) return std::nullopt;
  return reading->own_seconds + reading->children_seconds;
}

void remove_remains(const fs::path& path, std::error_code& error) {
  std::error_code unseen;  // remove_all() reports the error
  for (fs::recursive_directory_iterator at(path, unseen), end; at != end; at.increment(unseen)) {
    if (at->path().filename() == kLockFile) remove_segment_of(at->path());
  }
  fs::remove_all(path, error);
}

}  // namespace lockbench::testbed
