// Servers of any kind, played by shell scripts.

#include "testbed/servers/server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "testbed/servers/machine.h"
#include "tests/integration/testbed/support.h"
#include "tests/support/variable.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// Scripts as servers, which are ready once they have written "ready".
class Script : public testing::Test {
 protected:
  ServerSpec script(const std::string& text) {
    ServerSpec spec;
    spec.folder = testbed_->make_server_folder("script").value();
    spec.argv = {"/bin/sh", "-c", text};
    spec.ready = [](const Server& server) {
      return server.log().find("ready\n") != std::string::npos;
    };
    return spec;
  }
  std::unique_ptr<Server> start(const std::string& text) {
    return Server::start(*testbed_, script(text)).value();
  }

  std::unique_ptr<Testbed> testbed_ = must_start();
};

pid_t read_pid(const fs::path& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

TEST(Testbed, HasAPrivateFolderThatGoesWithIt) {
  auto testbed = must_start();
  const fs::path folder = testbed->folder();
  const pid_t supervisor = testbed->supervisor()->own_pid();
  struct stat facts {};
  ASSERT_EQ(stat(folder.c_str(), &facts), 0);
  // The account that runs the servers may enter.
  EXPECT_EQ(facts.st_mode & 0777, geteuid() == 0 ? 0710U : 0700U);
  EXPECT_EQ(facts.st_gid, geteuid() == 0 ? testbed->account().gid : getegid());
  testbed.reset();
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(pid_is_gone(supervisor));
}

TEST(Testbed, NamesATemporaryFolderThatItsAccountMayNotEnter) {
  if (geteuid() != 0) GTEST_SKIP() << "servers are run by the owner of the folder";
  const auto outer = must_start();
  const test::Variable closed("TMPDIR", outer->folder());
  const auto inside = Testbed::start();
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.error(), "the account lockbench may not enter " + outer->folder().string() +
                                ": set TMPDIR to a folder that all users may enter");
}

TEST(Account, IsNotRootAndIfItIsMissingHowToMakeItIsTold) {
  const auto missing = server_account("lockbench-none"), root = server_account("root");
  if (geteuid() != 0) {
    EXPECT_EQ(missing.value().name, "");
    return;
  }
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("useradd --system"), std::string::npos) << missing.error();
  EXPECT_TRUE(missing.error().ends_with(" lockbench-none")) << missing.error();
  EXPECT_FALSE(root);
}

TEST_F(Script, RemovesItsFolderAlsoWhenTheSupervisorWasKilled) {
  auto server = start("echo ready; exec sleep 600");
  const fs::path folder = testbed_->folder();
  ASSERT_EQ(kill(testbed_->supervisor()->own_pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return !server->alive(); }));
  EXPECT_FALSE(server->restart(true));
  testbed_.reset();
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Script, CarriesTheEndOfItsLogWhenItEndsWhileStarting) {
  const auto server =
      Server::start(*testbed_, script("seq 1 100; echo cannot read the entrails >&2; exit 3"));
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().find("sh ended while starting:\n92\n"), 0U) << server.error();
  EXPECT_NE(server.error().find("cannot read the entrails"), std::string::npos) << server.error();
}

TEST_F(Script, IsGivenABoundedTimeToBecomeReady) {
  const fs::path notes = testbed_->make_server_folder("notes").value();
  auto spec =
      script("echo $$ > " + (notes / "pid").string() + "; echo still thinking; exec sleep 600");
  spec.ready_within = milliseconds(300);
  const auto server = Server::start(*testbed_, spec);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), "sh was not ready within 300 ms:\nstill thinking");
  EXPECT_TRUE(pid_is_gone(read_pid(notes / "pid")));
}

TEST_F(Script, NamesAProgramThatCannotBeStarted) {
  auto spec = script("");
  spec.argv = {"/nowhere/server"};
  const auto server = Server::start(*testbed_, spec);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), "cannot start /nowhere/server: exec: No such file or directory");
}

TEST_F(Script, GetsItsArgumentsWholeAndNoSurprises) {
  auto spec = script(
      "printf '<%s>' \"$1\"; pwd; ls /proc/self/fd | tr '\\n' ' '; "
      "grep -E 'Sig(Blk|Ign)' /proc/self/status; echo ready; exec sleep 600");
  spec.argv.insert(spec.argv.end(), {"sh", "tab\there, 100%\nand a new line"});
  const auto server = Server::start(*testbed_, spec).value();
  const std::string log = server->log();
  EXPECT_NE(log.find("<tab\there, 100%\nand a new line>"), std::string::npos) << log;
  EXPECT_NE(log.find(server->data_folder().string()), std::string::npos) << log;
  EXPECT_NE(log.find("0 1 2 3 SigBlk"), std::string::npos) << log;  // 3 belongs to ls
  EXPECT_NE(log.find("SigBlk:\t0000000000000000"), std::string::npos) << log;
  // The C library reserves signals 32 and 33, which may have been inherited as ignored.
  const std::size_t ignored = log.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos) << log;
  EXPECT_EQ(std::stoull(log.substr(ignored + 8), nullptr, 16) & 0x7fffffff, 0U) << log;
}

TEST_F(Script, TakesItsOwnChildrenWithIt) {
  const auto server = start("sleep 600 & echo $! > child; echo ready; wait");
  const pid_t child = read_pid(server->data_folder() / "child");
  ASSERT_FALSE(pid_is_gone(child));
  ASSERT_TRUE(server->kill_hard());
  EXPECT_TRUE(eventually([&] { return pid_is_gone(child); }));

  // Also if it dies by itself.
  ASSERT_TRUE(server->restart(false));
  const pid_t second = read_pid(server->data_folder() / "child");
  ASSERT_FALSE(pid_is_gone(second));
  ASSERT_EQ(kill(server->pid(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return pid_is_gone(second) && !server->alive(); }));
}

TEST_F(Script, LeavesNoChildInASessionOfItsOwn) {
  // Like PostgreSQL's processes, out of reach of a signal to the group.
  const auto server = start(
      "setsid sh -c 'echo $$ > child; exec sleep 600' & "
      "while [ ! -s child ]; do sleep 0.01; done; "
      "echo ready; wait");
  const pid_t child = read_pid(server->data_folder() / "child");
  ASSERT_FALSE(pid_is_gone(child));
  testbed_.reset();
  EXPECT_TRUE(pid_is_gone(child));
}

TEST_F(Script, RunsAsTheAccountInAFolderOfItsOwn) {
  const auto server = start("id -u > who; echo ready; exec sleep 600");
  uid_t who = 0;
  std::ifstream(server->data_folder() / "who") >> who;
  EXPECT_EQ(who, geteuid() == 0 ? testbed_->account().uid : geteuid());
  for (const auto& [path, mode] : {std::pair{server->data_folder().parent_path(), 0700U},
                                   {server->data_folder(), 0700U},
                                   {server->log_path(), 0600U}}) {
    struct stat facts {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0) << path;
    EXPECT_EQ(facts.st_mode & 0777, mode) << path;
    EXPECT_EQ(facts.st_uid, who) << path;
  }
  // A terminal's Ctrl-C signals one group of one session; servers must survive until everything is
  // saved.
  const pid_t supervisor = testbed_->supervisor()->own_pid();
  for (const pid_t pid : {supervisor, server->pid()}) EXPECT_NE(getsid(pid), getsid(0));
  EXPECT_NE(getpgid(server->pid()), getpgrp());
  ASSERT_EQ(kill(supervisor, SIGKILL), 0);
  EXPECT_TRUE(
      eventually([&] { return look_at(server->pid()).ended(); }));  // PDEATHSIG survived setuid
}

TEST_F(Script, MayOutliveItsTestbed) {
  const auto server = start("echo ready; exec sleep 600");
  const pid_t pid = server->pid();
  testbed_.reset();
  EXPECT_TRUE(pid_is_gone(pid));
  EXPECT_FALSE(server->alive());
  EXPECT_TRUE(server->kill_hard()) << "fine once more";
  EXPECT_FALSE(server->freeze()) << "there is nothing to signal";
  EXPECT_FALSE(server->restart(true));
}

}  // namespace
}  // namespace lockbench::testbed
