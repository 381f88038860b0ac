#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "testbed/process/process_tree.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

/// All children of the server's main process.
std::set<pid_t> children_of(pid_t pid) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::set<pid_t> children;
  for (pid_t child = 0; list >> child;) children.insert(child);
  return children;
}

/// Whether there is System V shared memory created by this process.
bool has_shared_memory(pid_t maker) {
  std::ifstream table("/proc/sysvipc/shm");
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string key, number, mode, size;
    pid_t pid = 0;  // 0 in the heading
    words >> key >> number >> mode >> size >> pid;
    if (pid == maker) return true;
  }
  return false;
}

class Postgres : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();

  std::unique_ptr<Server> must_start_postgres(const PostgresOptions& options = {}) {
    return must(start_postgres(*testbed_, options));
  }
};

TEST_F(Postgres, IsKilledWithAllItsProcessesAlsoWhenFrozen) {
  const auto server = must_start_postgres();
  for (const bool frozen : {false, true}) {
    std::set<pid_t> all = children_of(server->pid());
    all.insert(server->pid());
    if (frozen) {
      ASSERT_TRUE(server->freeze());
    }
    ASSERT_TRUE(server->kill_hard());
    for (const pid_t pid : all) EXPECT_TRUE(pid_is_gone(pid)) << look_at(pid).state;
    ASSERT_TRUE(server->restart(true));
  }
}

TEST_F(Postgres, LeavesNoSharedMemoryWhenItIsKilledForGood) {
  auto server = must_start_postgres();
  const auto killed = [&] {
    const pid_t pid = server->pid();
    EXPECT_TRUE(server->kill_hard());
    EXPECT_TRUE(has_shared_memory(pid)) << "it could not remove it";
    return pid;
  };
  const auto expect_gone = [](pid_t pid) {
    EXPECT_TRUE(eventually([&] { return !has_shared_memory(pid); }));
  };
  const pid_t first = killed();
  ASSERT_TRUE(server->restart(false));
  expect_gone(first);
  const pid_t second = killed();
  server = must_start_postgres();
  expect_gone(second);
  const pid_t third = killed();
  testbed_.reset();
  expect_gone(third);
}

namespace fs = std::filesystem;

/// A lock file as PostgreSQL writes it, next to shared memory created by this process.
struct LockFile {
  const char* what;
  pid_t maker = getpid();  ///< according to the file
  bool whole = true;
  bool own = true;  ///< owned by this user
  bool segment_goes = false;
};

/// The folder is removed, and the segment that its server made.
TEST(Remains, AreTheFolderAndTheSegmentThatItsServerMade) {
  const LockFile files[] = {
      {.what = "our own", .segment_goes = true},
      // Then PostgreSQL writes the process id as a negative number.
      {.what = "killed as it made its data", .maker = -getpid(), .segment_goes = true},
      {.what = "another process's", .maker = getppid()},
      {.what = "not written to its end", .whole = false},
      {.what = "another user's", .own = false}};
  for (const LockFile& file : files) {
    if (!file.own && geteuid() != 0) continue;  // only root can give files away
    const int segment = shmget(IPC_PRIVATE, 56, IPC_CREAT | 0600);
    std::string folder = (fs::temp_directory_path() / "lockbench-remains-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    fs::create_directory(fs::path(folder) / "cluster");
    const fs::path path = fs::path(folder) / "cluster" / "postmaster.pid";
    std::ofstream(path) << file.maker << "\n/data\n";
    if (file.whole) {
      std::ofstream(path, std::ios::app)
          << fmt::format("1795655079\n5432\n/socket\n127.0.0.1\n0 {:>9}\nready   \n", segment);
    }
    if (!file.own) {
      ASSERT_EQ(chown(path.c_str(), 1, 1), 0);
    }
    std::error_code error;
    remove_remains(folder, error);
    EXPECT_FALSE(error) << error.message();
    EXPECT_FALSE(fs::exists(folder)) << file.what;
    shmid_ds facts{};
    EXPECT_EQ(shmctl(segment, IPC_STAT, &facts) != 0, file.segment_goes) << file.what;
    shmctl(segment, IPC_RMID, nullptr);
  }
  if (geteuid() != 0) GTEST_SKIP() << "another user's: only root gives files away";
}

}  // namespace
}  // namespace lockbench::testbed
