// Preloaded into one server process: notes for each file how much of it was synced, so that the
// rest can be cut off after a kill, as if the host had crashed.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

/// Under the file's number, as it may be renamed after the sync.
void note(ino_t file, off_t size) {
  const char* const folder = std::getenv("LOCKBENCH_SYNCED");
  if (folder == nullptr) return;
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/synced-%llu", folder,
                                   static_cast<unsigned long long>(file));
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return;
  const int record = open(path.data(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (record < 0) return;
  const auto synced = static_cast<std::int64_t>(size);
  // In one piece: the process may be killed at any time.
  static_cast<void>(!pwrite(record, &synced, sizeof(synced), 0));
  close(record);
}

/// The size before the sync: what is written during it may be lost.
int synced_by(long call, int file) {
  struct stat before {};
  const bool known = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  const auto result = static_cast<int>(syscall(call, file));
  if (result == 0 && known) note(before.st_ino, before.st_size);
  return result;
}

}  // namespace

extern "C" {

// The C library's names.
// NOLINTBEGIN(readability-identifier-naming)
__attribute__((visibility("default"))) int fdatasync(int file) {
  return synced_by(SYS_fdatasync, file);
}

__attribute__((visibility("default"))) int fsync(int file) { return synced_by(SYS_fsync, file); }
// NOLINTEND(readability-identifier-naming)

}  // extern "C"
