#include "testbed/process/remains.h"

#include <sys/shm.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// PostgreSQL guards its data by a small System V segment. It removes that, and this lock file,
/// when it ends in order.
constexpr const char* kLockFile = "postmaster.pid";

void remove_segment_of(const fs::path& lock_file) {
  std::ifstream file(lock_file);
  pid_t maker = 0;
  file >> maker;
  constexpr int kLinesBefore = 6;
  std::string skipped, key;
  for (int line = 0; line < kLinesBefore; ++line) std::getline(file, skipped);
  int segment = -1;
  if (!(file >> key >> segment)) return;
  struct stat facts {};
  shmid_ds shared{};
  if (lstat(lock_file.c_str(), &facts) != 0 || shmctl(segment, IPC_STAT, &shared) != 0) return;
  // Whatever the file says, another user's and another process's stay. initdb's is negative.
  if (shared.shm_perm.uid != facts.st_uid || shared.shm_cpid != std::abs(maker)) return;
  // Processes that are still dying keep it until they are gone.
  static_cast<void>(shmctl(segment, IPC_RMID, nullptr));
}

}  // namespace

void remove_remains(const fs::path& path, std::error_code& error) {
  std::error_code unseen;  // remove_all() says what is wrong
  for (fs::recursive_directory_iterator at(path, unseen), end; at != end; at.increment(unseen)) {
    if (at->path().filename() == kLockFile) remove_segment_of(at->path());
  }
  fs::remove_all(path, error);
}

}  // namespace lockbench::testbed
