#include "testbed/process/remains.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// Shared memory that this process has made, and a folder with a lock file as PostgreSQL writes it.
class Remains : public testing::Test {
 protected:
  Remains() : segment_(shmget(IPC_PRIVATE, 56, IPC_CREAT | 0600)) {
    std::string name = (fs::temp_directory_path() / "lockbench-remains-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~Remains() override {
    shmctl(segment_, IPC_RMID, nullptr);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path write_lock_file(pid_t maker) const {
    fs::create_directory(folder_ / "cluster");
    fs::path path = folder_ / "cluster" / "postmaster.pid";
    std::ofstream(path) << fmt::format(
        "{}\n/data\n1795655079\n5432\n/socket\n127.0.0.1\n{:>9} {:>9}\nready   \n", maker, 0,
        segment_);
    return path;
  }
  /// What is to be removed is.
  void remove() {
    std::error_code error;
    remove_remains(folder_, error);
    EXPECT_FALSE(error) << error.message();
    EXPECT_FALSE(fs::exists(folder_));
  }
  bool segment_is_there() const {
    shmid_ds facts{};
    return shmctl(segment_, IPC_STAT, &facts) == 0;
  }

  const int segment_;
  fs::path folder_;
};

TEST_F(Remains, AreAFolderAndTheSegmentThatItsServerMade) {
  write_lock_file(getpid());
  ASSERT_TRUE(segment_is_there());
  remove();
  EXPECT_FALSE(segment_is_there());
}

/// PostgreSQL writes the process as a negative number then.
TEST_F(Remains, AreAlsoThoseOfAServerThatWasKilledAsItMadeItsData) {
  write_lock_file(-getpid());
  remove();
  EXPECT_FALSE(segment_is_there());
}

TEST_F(Remains, AreNothingOfAnotherProcess) {
  write_lock_file(getppid());
  remove();
  EXPECT_TRUE(segment_is_there());
}

TEST_F(Remains, AreNothingOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(write_lock_file(getpid()).c_str(), 1, 1), 0);
  remove();
  EXPECT_TRUE(segment_is_there());
}

TEST_F(Remains, OfALockFileThatWasNotWrittenToItsEndAreTheFolder) {
  std::ofstream(write_lock_file(getpid())) << getpid() << "\n/data\n";
  remove();
  EXPECT_TRUE(segment_is_there());
}

}  // namespace
}  // namespace lockbench::testbed
