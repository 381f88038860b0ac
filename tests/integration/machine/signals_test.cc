#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <list>

#include "tests/integration/support/documents.h"
#include "tests/support/processes.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const Json measuring = {{"event", "progress"}, {"phase", "measuring"}, {"run", 1}};

/// What is in the folder beside results.
Words leftovers(const Scratch& scratch) {
  Words names;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("r.json")) names.push_back(name);
  }
  return names;
}

/// Its servers and their folders end with it at any moment: before they start, while they do, while
/// they run or are frozen, and while they stop.
TEST(Kill, LeavesNoProcessAndNoFolderBehind) {
  using Moment = std::function<bool(Program&, const Scratch&)>;
  const auto has_children = [](std::size_t number) -> Moment {
    return [=](Program& program, const Scratch&) {
      return descendants_of(program.pid()).size() >= number;
    };
  };
  const std::vector<Moment> moments{
      has_children(0),
      has_children(1),
      has_children(2),
      [](Program& program, const Scratch&) { return tells(program, measuring); },
      [](Program& program, const Scratch&) {
        return tells(program, measuring) &&
               kill(descendants_of(program.pid()).back(), SIGSTOP) == 0;
      },
      [](Program&, const Scratch& scratch) { return fs::exists(scratch / "r.json"); }};
  const Foster foster;
  const auto before = descendants_of(getpid());
  std::list<Scratch> scratches;
  for (const Moment& moment : moments) {
    const Scratch& scratch = scratches.emplace_back();
    Program program(scratch, {"run", "redis-set-nx", "none", "--duration", "2s", "--warmup", "0ms",
                              "--out", "r.json", "--events", "-"});
    EXPECT_TRUE(eventually([&] { return moment(program, scratch); }));
    program.signal(SIGKILL);
    program.finish();
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
