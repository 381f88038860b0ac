#include "testbed/process/process_tree.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace lockbench::testbed {
namespace {

void add_children(pid_t parent, std::set<pid_t>& found) {
  const std::string process = std::to_string(parent);
  std::ifstream list("/proc/" + process + "/task/" + process + "/children");
  for (pid_t pid = 0; list >> pid;) {
    if (found.insert(pid).second) add_children(pid, found);
  }
}

/// Whether this thread has stopped, read from "pid (name) state ..."; names may contain anything.
bool stands_still(const std::filesystem::path& thread) {
  std::ifstream file(thread / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = text.rfind(") ");
  return end == std::string::npos ||
         std::string_view("TtZX").find(text[end + 2]) != std::string_view::npos;
}

/// SIGSTOP takes effect on each thread when it next enters the kernel.
void await_stopped(pid_t pid) {
  constexpr int kLooks = 200;
  std::error_code gone;
  for (int look = 0; look < kLooks; ++look) {
    bool all = true;
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
      all = all && stands_still(thread.path());
    }
    if (all) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Stops all descendants, so that none can start another process or be reaped by its parent, and no
/// pid is reused. The leader has been stopped before.
std::set<pid_t> stop_descendants(pid_t leader) {
  // A bound in case the tree grows while it is being stopped.
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

}  // namespace

bool signal_tree(pid_t leader, int signo) {
  if (signo != SIGSTOP && signo != SIGCONT && signo != SIGKILL) return kill(-leader, signo) == 0;
  if (signo == SIGCONT) {
    std::set<pid_t> descendants;
    add_children(leader, descendants);
    for (const pid_t pid : descendants) kill(pid, SIGCONT);
    return kill(-leader, SIGCONT) == 0;
  }
  if (kill(-leader, SIGSTOP) != 0) return false;
  await_stopped(leader);
  const std::set<pid_t> descendants = stop_descendants(leader);
  if (signo == SIGSTOP) return true;
  for (const pid_t pid : descendants) kill(pid, SIGKILL);
  return kill(-leader, SIGKILL) == 0;
}

}  // namespace lockbench::testbed
