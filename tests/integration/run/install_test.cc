#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/folders.h"
#include "tests/integration/support/program.h"

// scripts/install_packages.sh, with a package manager that the test plays.

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;

class Install : public testing::Test {
 protected:
  Install() {
    fs::create_directory(scratch_ / "bin");
    play("dpkg-query", "exit 1");  // nothing is installed
    play("sudo", R"(exec "$@")");
    play("useradd", R"(echo "$@" >> )" + (scratch_ / "useradd").string());
    play("id", "[ \"$*\" = -u ] && echo 0");  // root, and there is no account yet
  }

  void play(const std::string& program, const std::string& script) const {
    const fs::path path = scratch_ / "bin" / program;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  Setting setting() const {
    return {.program = LOCKBENCH_SOURCE_DIR "/scripts/install_packages.sh",
            .environment = {{"PATH", (scratch_ / "bin").string() + ":" + std::getenv("PATH")},
                            {"LOCKBENCH_POLICY", policy().string()}}};
  }
  fs::path policy() const { return scratch_ / "policy-rc.d"; }
  /// What a package asks before it starts its service: 101 forbids that.
  int ask_policy() const {
    return WEXITSTATUS(std::system(policy().c_str()));  // NOLINT(concurrency-mt-unsafe)
  }

  const Scratch scratch_;
};

TEST_F(Install, StartsNoServiceAndLeavesNothingBehind) {
  play("apt-get", fmt::format("[ \"$1\" = update ] || {}; echo $? > {}", policy().string(),
                              (scratch_ / "answer").string()));
  const Outcome outcome = lockbench(scratch_, {"run"}, setting());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_file(scratch_ / "answer"), "101\n");
  EXPECT_FALSE(fs::exists(policy()));
}

TEST_F(Install, ThatIsKilledForbidsNothingAfterwards) {
  const fs::path installing = scratch_ / "installing";
  play("apt-get",
       fmt::format("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60", installing.string()));
  Program program(scratch_, {"run"}, setting());
  ASSERT_TRUE(eventually([&] { return fs::exists(installing); }));
  EXPECT_EQ(ask_policy(), 101);
  program.signal(SIGKILL);
  kill(std::stoi(read_file(installing)), SIGKILL);
  EXPECT_EQ(program.finish().signal, SIGKILL);
  ASSERT_TRUE(fs::exists(policy()));
  EXPECT_EQ(ask_policy(), 0);
  EXPECT_FALSE(fs::exists(policy()));
}

TEST_F(Install, LeavesThePolicyOfTheHostAlone) {
  play("apt-get", "exit 0");
  std::ofstream(policy()) << "#!/bin/sh\nexit 104\n";
  EXPECT_EQ(lockbench(scratch_, {"run"}, setting()).code, 0);
  EXPECT_EQ(read_file(policy()), "#!/bin/sh\nexit 104\n");
}

TEST_F(Install, TakesTheNodeAndTheNpmThatAreThere) {
  const fs::path asked = scratch_ / "asked";
  play("apt-get", fmt::format("echo \" $* \" > {}", asked.string()));
  play("node", "exit 0");
  play("npm", "exit 0");
  EXPECT_EQ(lockbench(scratch_, {"full"}, setting()).code, 0);
  expect_in(read_file(asked), " chromium ");
  EXPECT_EQ(read_file(asked).find(" npm "), std::string::npos);
  EXPECT_EQ(read_file(asked).find(" nodejs "), std::string::npos);
}

TEST_F(Install, MakesTheAccountOfPrivateServers) {
  play("apt-get", "exit 0");
  EXPECT_EQ(lockbench(scratch_, {"run"}, setting()).code, 0);
  const std::string made = read_file(scratch_ / "useradd");
  expect_in(made, "--system");
  expect_in(made, "nologin");
  EXPECT_TRUE(made.ends_with(" lockbench\n")) << made;
}

}  // namespace
}  // namespace lockbench::test
