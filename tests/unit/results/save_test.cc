#include "results/file/save.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_folder.h"
#include "tests/support/variable.h"

namespace {
/// If set, rename() fails as if every file were a mount point.
bool all_are_mounted_on = false;
}  // namespace

/// Replaces the C library's.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (!all_are_mounted_on) return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
  errno = EBUSY;
  return -1;
}

namespace lockbench::results {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

auto files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

/// All files, including temporary ones, go to the test's folder.
class SaveTest : public testing::Test {
 protected:
  SaveTest() {
    for (const fs::path& folder : {refuge_, place_}) fs::create_directories(folder);
  }

  const test::TemporaryFolder root_;
  const fs::path refuge_ = root_ / "tmp", place_ = root_ / "results";
  const test::Variable tmpdir_{"TMPDIR", refuge_.string()};
};

TEST_F(SaveTest, WritesTheWholeTextAndNothingElse) {
  const auto saved = save(place_ / "a.json", "first");
  ASSERT_TRUE(saved.has_value()) << saved.error();
  EXPECT_EQ(saved->path, place_ / "a.json");
  EXPECT_EQ(saved->warning, "");
  EXPECT_EQ(content(place_ / "a.json"), "first");
  ASSERT_TRUE(save(place_ / "a.json", "second").has_value());
  EXPECT_EQ(content(place_ / "a.json"), "second");
  EXPECT_EQ(files_in(place_), 1);
  EXPECT_EQ(files_in(refuge_), 0);
}

TEST_F(SaveTest, AFileHasTheUsersPermissionsAndKeepsThem) {
  const mode_t before = ::umask(022);
  ASSERT_TRUE(save(place_ / "new.json", "text").has_value());
  ::umask(before);
  EXPECT_EQ(fs::status(place_ / "new.json").permissions(), fs::perms(0644));
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0664)}) {
    std::ofstream(place_ / "a.json") << "old";
    fs::permissions(place_ / "a.json", mode);
    ASSERT_TRUE(save(place_ / "a.json", "new").has_value());
    EXPECT_EQ(content(place_ / "a.json"), "new");
    EXPECT_EQ(fs::status(place_ / "a.json").permissions(), mode);
  }
}

TEST_F(SaveTest, AFileThatIsMountedOnIsWrittenInPlace) {
  std::ofstream(place_ / "a.json") << "the old text is longer";
  all_are_mounted_on = true;
  const auto saved = save(place_ / "a.json", "new");
  all_are_mounted_on = false;
  ASSERT_TRUE(saved.has_value()) << saved.error();
  EXPECT_EQ(saved->warning, "");
  EXPECT_EQ(content(place_ / "a.json"), "new");
  EXPECT_EQ(files_in(place_), 1);
}

TEST_F(SaveTest, ALinkStaysOne) {
  fs::create_symlink(place_ / "a.json", place_ / "link");
  ASSERT_TRUE(save(place_ / "a.json", "first").has_value());
  ASSERT_TRUE(save(place_ / "link", "second").has_value());
  EXPECT_TRUE(fs::is_symlink(place_ / "link"));
  EXPECT_EQ(content(place_ / "a.json"), "second");
}

TEST_F(SaveTest, DevicesAreWrittenToAndStay) {
  EXPECT_TRUE(check_writable("/dev/null").has_value());
  ASSERT_TRUE(save("/dev/null", "text").has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(SaveTest, AFullDiskSendsTheTextToTheTemporaryFolder) {
  const auto saved = save("/dev/full", "text");
  ASSERT_TRUE(saved.has_value()) << saved.error();
  EXPECT_TRUE(saved->path.string().starts_with(refuge_.string())) << saved->path;
  EXPECT_EQ(content(saved->path), "text");
  EXPECT_THAT(saved->warning, HasSubstr("/dev/full: No space left on device"));
  EXPECT_THAT(saved->warning, HasSubstr(saved->path.string()));
}

TEST_F(SaveTest, AMissingTemporaryFolderIsReplacedByTheUsualOne) {
  fs::remove_all(place_);
  fs::remove_all(refuge_);
  const fs::path nowhere = root_ / "nowhere";
  ::setenv("TMPDIR", nowhere.c_str(), 1);  // it does not exist, so /tmp is used, which has room
  const auto saved = save(place_ / "a.json", "text");
  ASSERT_TRUE(saved.has_value()) << saved.error();
  EXPECT_TRUE(saved->path.string().starts_with("/tmp/lockbench-")) << saved->path;
  fs::remove_all(saved->path.parent_path());
}

// In a child process with a file size limit of a few bytes: like a disk that fills up during a
// write.
TEST_F(SaveTest, AWriteThatBreaksOffLeavesTheOldFileAndNoRest) {
  const fs::path path = place_ / "a.json";
  ASSERT_TRUE(save(path, "old").has_value());
  const auto child = [&path] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
      std::exit(2);
    }
    const auto saved = save(path, std::string(5000, 'x'));
    // The temporary folder is full too, so there is only the error.
    const bool told = !saved && saved.error().find(path.string()) != std::string::npos &&
                      saved.error().find("tmp/lockbench-") != std::string::npos &&
                      saved.error().find('\n') == std::string::npos;
    std::exit(told ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in(place_), 1);
  EXPECT_EQ(files_in(refuge_), 0);
}

TEST_F(SaveTest, CheckCreatesDirectoriesAndLeavesNoFile) {
  const fs::path path = place_ / "new" / "deep" / "a.json";
  ASSERT_TRUE(check_writable(path).has_value());
  EXPECT_EQ(files_in(place_ / "new" / "deep"), 0);
  std::ofstream(path) << "old";
  ASSERT_TRUE(check_writable(path).has_value());
  EXPECT_EQ(content(path), "old");
  EXPECT_TRUE(check_writable("a-file-that-is-not-there.json").has_value());
  EXPECT_FALSE(fs::exists("a-file-that-is-not-there.json"));
}

TEST_F(SaveTest, CheckSaysWhatIsWrongAndNamesThePath) {
  std::ofstream(place_ / "file") << "text";
  ASSERT_EQ(::mkfifo((place_ / "fifo").c_str(), 0600), 0);
  const std::vector<std::pair<fs::path, std::string>> cases = {
      {place_, "is a directory"},
      {place_ / "", "names no file"},
      {place_ / "file" / "a.json", "cannot create the directory"},
      {place_ / "fifo", "not a file"},
      {place_ / std::string(300, 'n'), "File name too long"},
      {"", "names no file"},
  };
  for (const auto& [path, reason] : cases) {
    const auto checked = check_writable(path);
    ASSERT_FALSE(checked.has_value()) << path;
    EXPECT_THAT(checked.error(), HasSubstr(reason));
    EXPECT_THAT(checked.error(), HasSubstr(path.string()));
    EXPECT_EQ(std::count(checked.error().begin(), checked.error().end(), '\n'), 0);
  }
}

TEST_F(SaveTest, SavingOverADirectoryOrAPipeTouchesNeither) {
  ASSERT_EQ(::mkfifo((place_ / "fifo").c_str(), 0600), 0);
  for (const fs::path& path : {place_, place_ / "fifo"}) {
    const auto saved = save(path, "text");
    ASSERT_TRUE(saved.has_value()) << saved.error();
    EXPECT_NE(saved->warning, "");
    EXPECT_EQ(content(saved->path), "text");
  }
  EXPECT_TRUE(fs::is_directory(place_));
  EXPECT_TRUE(fs::is_fifo(place_ / "fifo"));
}

}  // namespace
}  // namespace lockbench::results
