#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;

struct Process {
  char state = 0;  ///< as /proc tells it: 'T' stands still, 'Z' is dead; 0: there is none
  pid_t parent = 0;

  bool ended() const { return state == 0 || state == 'Z'; }
};

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

/// Adopts orphans, as the first process of a container does. It is of their session, so that the
/// kernel does not wake those that are stopped.
class Foster {
 public:
  Foster() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  Foster(const Foster&) = delete;
  Foster& operator=(const Foster&) = delete;
  ~Foster() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST(KilledHazards, LeaveNoProcessBehindNotEvenAStoppedOne) {
  const Foster foster;
  const Scratch scratch;
  // Nobody gets this lock while its holder is stopped, which takes a while.
  Program program(scratch,
                  {"hazards", "pause-holding", "--strategies", "redis-setnx", "--out", "r.json"});
  std::vector<pid_t> all;
  const auto one_is_stopped = [&] {
    all = descendants_of(program.pid());
    return std::any_of(all.begin(), all.end(), [](pid_t pid) { return look_at(pid).state == 'T'; });
  };
  ASSERT_TRUE(eventually(one_is_stopped));
  EXPECT_GE(all.size(), 4U) << "two clients, a server, and who supervises it";
  program.signal(SIGKILL);
  EXPECT_EQ(program.finish(std::chrono::seconds(5)).signal, SIGKILL);
  for (const pid_t pid : all) {
    EXPECT_TRUE(eventually([&] { return look_at(pid).ended(); })) << look_at(pid).state;
    if (look_at(pid).parent != getpid()) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST(KilledRun, IsSavedAsFarAsItCameAndCanBeResumed) {
  const Scratch scratch;
  const std::vector<std::string> command{"run",   "none",     "local-mutex", "--duration",
                                         "300ms", "--warmup", "0ms",         "--repeat",
                                         "4",     "--out",    "r.json",      "--resume"};
  Program program(scratch, command);
  ASSERT_TRUE(eventually([&] { return fs::exists(scratch / "r.json"); }));
  program.signal(SIGKILL);
  EXPECT_EQ(program.finish(std::chrono::seconds(5)).signal, SIGKILL);
  const Json saved = read_result(scratch / "r.json");
  EXPECT_TRUE(saved.at("interrupted"));
  const std::size_t made = saved.at("runs").size();
  ASSERT_GE(made, 1U);
  ASSERT_LT(made, 8U);

  const Outcome resumed = lockbench(scratch, command);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_FALSE(result.at("interrupted"));
  ASSERT_EQ(result.at("runs").size(), 8U);
  for (std::size_t i = 0; i < made; ++i) {
    EXPECT_EQ(result.at("runs").at(i).at("sections"), saved.at("runs").at(i).at("sections"));
  }
  std::set<std::pair<std::string, int>> distinct;
  for (const Json& run : result.at("runs")) {
    distinct.emplace(run.at("strategy"), run.at("repetition"));
  }
  EXPECT_EQ(distinct.size(), 8U);

  std::vector<std::string> otherwise = command;
  otherwise.insert(otherwise.end(), {"--clients", "3"});
  const Outcome refused = lockbench(scratch, otherwise);
  EXPECT_EQ(refused.code, 1);
  expect_in(refused.err, "clients");
}

}  // namespace
}  // namespace lockbench::test
