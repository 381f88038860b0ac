#include "tests/support/processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/support/program.h"

namespace lockbench::test {

namespace fs = std::filesystem;

Process look_at(pid_t pid) {
  std::ifstream file(fs::path("/proc") / std::to_string(pid) / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  return {.state = text.at(name_end + 2), .parent = std::stoi(text.substr(name_end + 4))};
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::vector<pid_t> found{ancestor};
  for (std::size_t next = 0; next < found.size(); ++next) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const pid_t pid = std::stoi(name);
      if (look_at(pid).parent == found[next]) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

Foster::Foster() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
Foster::~Foster() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

bool Foster::all_end(const std::vector<pid_t>& processes) {
  const bool ended = eventually([&] {
    return std::all_of(processes.begin(), processes.end(),
                       [](pid_t pid) { return look_at(pid).ended(); });
  });
  for (const pid_t pid : processes) {
    if (look_at(pid).parent != getpid()) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return ended;
}

}  // namespace lockbench::test
