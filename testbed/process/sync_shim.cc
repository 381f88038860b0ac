#include "testbed/process/sync_shim.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// As the shim has noted it; 0 if it was never synced.
std::uintmax_t synced_size(const fs::path& folder, ino_t file) {
  std::int64_t size = 0;
  std::ifstream record(folder / fmt::format("synced-{}", file), std::ios::binary);
  if (!record.read(reinterpret_cast<char*>(&size), sizeof(size))) return 0;
  return static_cast<std::uintmax_t>(std::max<std::int64_t>(size, 0));
}

}  // namespace

void put_under_sync_shim(const Testbed& testbed, ServerSpec& server) {
  const auto shim = need(testbed.lend(need(find_beside("lockbench-sync-shim.so")), server.folder));
  server.argv.insert(server.argv.begin(), {"/usr/bin/env", "LD_PRELOAD=" + shim.string(),
                                           "LOCKBENCH_SYNCED=" + server.folder.string()});
}

tl::expected<std::uintmax_t, std::string> forget_unsynced(const Server& server) {
  std::uintmax_t lost = 0;
  std::error_code error;
  const fs::path folder = server.data_folder().parent_path();
  for (fs::recursive_directory_iterator at(server.data_folder(), error), end; !error && at != end;
       at.increment(error)) {
    struct stat file {};
    if (stat(at->path().c_str(), &file) != 0) {
      return tl::unexpected(
          fmt::format("cannot look at {}: {}", at->path().string(), std::strerror(errno)));
    }
    const auto size = static_cast<std::uintmax_t>(file.st_size);
    const std::uintmax_t synced = synced_size(folder, file.st_ino);
    if (!S_ISREG(file.st_mode) || synced >= size) continue;
    fs::resize_file(at->path(), synced, error);
    lost += size - synced;
  }
  if (error) return tl::unexpected("cannot cut off what was not synced: " + error.message());
  return lost;
}

}  // namespace lockbench::testbed
