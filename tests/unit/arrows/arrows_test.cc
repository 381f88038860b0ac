#include "tests/unit/arrows/arrows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/folders.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// A source tree of a few files in a temporary folder.
class SourceTree {
 public:
  SourceTree()
      : root_(fs::temp_directory_path() / ("lockbench-arrows-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
  }
  SourceTree(const SourceTree&) = delete;
  SourceTree& operator=(const SourceTree&) = delete;
  ~SourceTree() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void add(const std::string& file, const std::string& included) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "#include <vector>\n\n#include \"" << included << "\"\n";
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(Arrows, NoFileIncludesARoomThatItMustNotKnow) {
  EXPECT_THAT(forbidden_includes(LOCKBENCH_SOURCE_DIR), IsEmpty());
}

TEST(Arrows, AForbiddenIncludeIsNamedWithItsFileAndItsArrow) {
  SourceTree tree;
  tree.add("results/stats/figures.cc", "strategies/env.h");
  tree.add("loadgen/fibers/scheduler.cc", "loadgen/record/recorder.h");
  tree.add("loadgen/fibers/stacks.h", "strategies/redis/client/connection.h");
  tree.add("loadgen/run/runner.h", "loadgen/experiments/capacity_search.h");
  tree.add("strategies/registry.cc", "strategies/redis/client/connection.h");
  tree.add("strategies/etcd/lock.cc", "strategies/postgres/client/session.h");
  tree.add("exporter/absent.cc.in", "cli/options/options.h");
  tree.add("testbed/servers/server.cc", "tests/support/servers.h");
  tree.add("cloud/fleet.cc", "results/file/model.h");
  EXPECT_THAT(forbidden_includes(tree.root()),
              ElementsAre("cloud/fleet.cc includes results/file/model.h: "
                          "its folder is not in the table of rooms",
                          "exporter/absent.cc.in includes cli/options/options.h: "
                          "exporter must not include cli/options",
                          "loadgen/fibers/scheduler.cc includes loadgen/record/recorder.h: "
                          "loadgen/fibers must not include loadgen/record",
                          "loadgen/fibers/stacks.h includes strategies/redis/client/connection.h: "
                          "loadgen/fibers must not include strategies/redis",
                          "loadgen/run/runner.h includes loadgen/experiments/capacity_search.h: "
                          "loadgen/run must not include loadgen/experiments",
                          "results/stats/figures.cc includes strategies/env.h: "
                          "results must not include strategies",
                          "strategies/etcd/lock.cc includes strategies/postgres/client/session.h: "
                          "strategies/etcd must not include strategies/postgres",
                          "strategies/registry.cc includes strategies/redis/client/connection.h: "
                          "strategies must not include strategies/redis",
                          "testbed/servers/server.cc includes tests/support/servers.h: "
                          "testbed must not include what is in no room"));
}

}  // namespace
}  // namespace lockbench::test
