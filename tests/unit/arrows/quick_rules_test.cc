#include "tests/unit/arrows/quick_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "tests/folders.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// The files of quick suites that must sleep or read a real clock: what they test is just that.
constexpr std::array kExceptions{
    Exception{"tests/unit/strategies/env_test.cc", "compares an Env's clocks with the system's"},
    Exception{"tests/unit/loadgen/fibers/virtual_time_test.cc", "lets real time pass beside it"},
    Exception{"tests/conformance/redis/test_store.cc", "reads a lock whose value is a time of day"},
    Exception{"tests/conformance/etcd/probe.cc", "gRPC takes deadlines by the time of day"},
    Exception{"tests/conformance/etcd/long_leases_test.cc", "likewise"},
    Exception{"tests/hostile/etcd/hostile_etcd.h", "likewise"},
    Exception{"tests/integration/support/program.cc", "bounds what it waits for by kPatience"},
    Exception{"tests/integration/testbed/proxy_fixture.h",
              "measures a delay that has a lower bound"},
    Exception{"tests/integration/testbed/tcp_client.cc", "bounds what it waits for by kPatience"},
};

/// The folders of quick suites in a temporary folder, with a few files.
class QuickTree {
 public:
  QuickTree() : root_(fs::temp_directory_path() / ("lockbench-quick-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    for (const auto* folder : {"unit", "conformance", "hostile", "integration", "hazards/plays"}) {
      fs::create_directories(root_ / "tests" / folder);
    }
    fs::create_directories(root_ / "tests/dashboards");
  }
  QuickTree(const QuickTree&) = delete;
  QuickTree& operator=(const QuickTree&) = delete;
  ~QuickTree() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void add(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::vector<std::string> broken(std::span<const Exception> exceptions = {}) const {
    return broken_quick_rules(root_, exceptions);
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(QuickRules, NoQuickSuiteSleepsOrReadsARealClock) {
  EXPECT_THAT(broken_quick_rules(LOCKBENCH_SOURCE_DIR, kExceptions), IsEmpty());
}

TEST(QuickRules, EachSleepAndEachRealClockIsNamedWithItsLine) {
  QuickTree tree;
  tree.add("tests/unit/results/a_test.cc", "\nstd::this_thread::sleep_for(1ms);\n");
  tree.add("tests/conformance/redis/b.cc", "std::this_thread::sleep_until(end);\n");
  tree.add("tests/hostile/c.h", "const auto begin = std::chrono::steady_clock::now();\n");
  tree.add("tests/integration/d.cc", "time = system_clock::now() + slack();\nusleep(5);\n");
  tree.add("tests/hazards/plays/e.cc", "BootClock::now();\n");
  tree.add("tests/dashboards/boards/f.cc", "using Clock = steady_clock;\n\nClock::now();\n");
  tree.add("tests/unit/watch/g.cc", "EXPECT_LT(Carrier::current().now() - begin, 1s);\n");
  EXPECT_THAT(
      tree.broken(),
      ElementsAre("tests/conformance/redis/b.cc:1: sleep_until",
                  "tests/dashboards/boards/f.cc:3: Clock::now",
                  "tests/hazards/plays/e.cc:1: Clock::now", "tests/hostile/c.h:1: clock::now",
                  "tests/integration/d.cc:1: clock::now", "tests/integration/d.cc:1: slack()",
                  "tests/integration/d.cc:2: usleep", "tests/unit/results/a_test.cc:2: sleep_for",
                  "tests/unit/watch/g.cc:1: LT(Carrier::current().now()"));
}

TEST(QuickRules, CommentsLiteralsOtherFilesAndFullSuitesMayNameThem) {
  QuickTree tree;
  tree.add("tests/unit/a_test.cc",
           "// sleep_for\nrun(\"sleep_for \\\" \", 'x');  // steady_clock::now\n");
  tree.add("tests/unit/a.py", "sleep_for()\n");
  tree.add("tests/full/timing/a_test.cc", "sleep_for(1s);\n");
  tree.add("tests/support/eventually.h", "sleep_for(1s);\n");
  EXPECT_THAT(tree.broken(), IsEmpty());
}

TEST(QuickRules, CodeBetweenLiteralsAndDigitSeparatorsCounts) {
  QuickTree tree;
  tree.add("tests/unit/a_test.cc", "f(\"//\"); usleep(1'000); g('\"');\nf(1'0); nanosleep(x);\n");
  EXPECT_THAT(tree.broken(),
              ElementsAre("tests/unit/a_test.cc:1: usleep", "tests/unit/a_test.cc:2: nanosleep"));
}

TEST(QuickRules, AnExceptedFileMaySleepAndAnUnneededExceptionIsNamed) {
  QuickTree tree;
  tree.add("tests/unit/a_test.cc", "sleep_for(1s);\n");
  tree.add("tests/unit/b_test.cc", "\n");
  const std::array<Exception, 3> exceptions{Exception{"tests/unit/a_test.cc", "tests sleeping"},
                                            Exception{"tests/unit/b_test.cc", "once slept"},
                                            Exception{"tests/unit/gone_test.cc", "is gone"}};
  EXPECT_THAT(tree.broken(exceptions), ElementsAre("tests/unit/b_test.cc: needs no exception",
                                                   "tests/unit/gone_test.cc: needs no exception"));
}

TEST(QuickRules, TenFilesMayBeExceptedButNotEleven) {
  QuickTree tree;
  std::vector<std::string> files;
  for (char letter = 'a'; letter <= 'k'; ++letter) {
    files.push_back(std::string("tests/unit/") + letter + "_test.cc");
    tree.add(files.back(), "sleep_for(1s);\n");
  }
  std::vector<Exception> exceptions;
  exceptions.reserve(files.size());
  for (const std::string& file : files) exceptions.push_back({file, "tests sleeping"});
  EXPECT_THAT(tree.broken(exceptions),
              ElementsAre("tests/unit/k_test.cc: is more than 10 exceptions"));
  tree.add("tests/unit/k_test.cc", "");
  exceptions.pop_back();
  EXPECT_THAT(tree.broken(exceptions), IsEmpty());
}

TEST(QuickRules, AFolderThatDoesNotExistIsNamed) {
  QuickTree tree;
  fs::remove(tree.root() / "tests/hostile");
  EXPECT_THAT(tree.broken(), ElementsAre("tests/hostile: no such folder"));
}

}  // namespace
}  // namespace lockbench::test
