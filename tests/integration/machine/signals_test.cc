#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <list>
#include <thread>

#include "tests/integration/machine/under.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/processes.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Words = std::vector<std::string>;

const Words long_run = {"run",      "redis-set-nx", "--duration", "60s",
                        "--warmup", "0ms",          "--out",      "r.json"};

/// What is in the folder beside results.
Words leftovers(const Scratch& scratch) {
  Words names;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("r.json")) names.push_back(name);
  }
  return names;
}

TEST(Hangup, IsIgnoredUnderNohup) {
  const Scratch scratch;
  const Wrapped wrapped = under_shell(R"(trap "" HUP; exec "$@")", long_run);
  Program program(scratch, wrapped.arguments, wrapped.setting);
  ASSERT_TRUE(program.says("redis-set-nx (1/1)")) << program.said();
  program.signal(SIGHUP);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().code, 105) << "ended by the second one";
  EXPECT_TRUE(read_result(scratch / "r.json").at("interrupted"));
}

TEST(Termination, TwiceLeavesNothingBehind) {
  const Foster foster;
  const auto before = descendants_of(getpid());
  const Scratch scratch;
  Program program(scratch, long_run);
  ASSERT_TRUE(program.says("redis-set-nx (1/1)")) << program.said();
  program.signal(SIGTERM);
  program.signal(SIGTERM);
  const Outcome outcome = program.finish();
  EXPECT_TRUE(outcome.code == 105 || outcome.signal == SIGTERM) << outcome.code;
  EXPECT_TRUE(eventually([&] { return leftovers(scratch).empty(); }));
  auto after = descendants_of(getpid());
  std::erase_if(after, [&](pid_t pid) {
    return std::find(before.begin(), before.end(), pid) != before.end();
  });
  EXPECT_TRUE(Foster::all_end(after));
}

/// Its servers and their folders end with it at any moment: while they start, run and stop.
TEST(Kill, LeavesNoProcessAndNoFolderBehind) {
  constexpr std::array kMoments{0, 15, 30, 60, 100, 200, 400, 700, 1000};
  const Foster foster;
  const auto before = descendants_of(getpid());
  std::list<Scratch> scratches;
  {
    std::list<Program> programs;
    const auto begun = std::chrono::steady_clock::now();
    for ([[maybe_unused]] const int moment : kMoments) {
      programs.emplace_back(scratches.emplace_back(),
                            Words{"run", "redis-set-nx", "none", "--duration", "300ms", "--warmup",
                                  "0ms", "--out", "r.json"});
    }
    auto program = programs.begin();
    for (const int moment : kMoments) {
      std::this_thread::sleep_until(begun + milliseconds(moment));
      (program++)->signal(SIGKILL);
    }
  }
  const auto orphans = [&] {
    auto all = descendants_of(getpid());
    std::erase_if(all, [&](pid_t pid) {
      return std::find(before.begin(), before.end(), pid) != before.end();
    });
    return all;
  };
  EXPECT_TRUE(Foster::all_end(orphans()));
  EXPECT_TRUE(Foster::all_end(orphans())) << "and what these may have started";
  for (const Scratch& scratch : scratches) {
    EXPECT_TRUE(eventually([&] { return leftovers(scratch).empty(); }))
        << leftovers(scratch).front();
    if (!fs::exists(scratch / "r.json")) continue;
    EXPECT_NO_THROW(read_result(scratch / "r.json"));
  }
}

}  // namespace
}  // namespace lockbench::test
