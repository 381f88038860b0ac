#include "testbed/process/sync_shim.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// As the shim has noted it; nothing if the file was never synced.
std::optional<std::uintmax_t> synced_size(const fs::path& folder, ino_t file) {
  std::int64_t size = 0;
  std::ifstream record(folder / fmt::format("synced-{}", file), std::ios::binary);
  if (!record.read(reinterpret_cast<char*>(&size), sizeof(size)) || size < 0) return std::nullopt;
  return static_cast<std::uintmax_t>(size);
}

}  // namespace

void put_under_sync_shim(const Testbed& testbed, ServerSpec& server) {
  const auto shim = need(testbed.lend(need(find_beside("lockbench-sync-shim.so")), server.folder));
  server.argv.insert(server.argv.begin(), {"/usr/bin/env", "LD_PRELOAD=" + shim.string(),
                                           "LOCKBENCH_SYNCED=" + server.folder.string()});
}

tl::expected<std::uintmax_t, std::string> forget_unsynced(const Server& server) {
  std::uintmax_t lost = 0;
  bool noted = false;
  std::error_code error;
  const fs::path folder = server.data_folder().parent_path();
  for (fs::recursive_directory_iterator at(server.data_folder(), error), end; !error && at != end;
       at.increment(error)) {
    struct stat file {};
    if (stat(at->path().c_str(), &file) != 0) {
      return tl::unexpected(
          fmt::format("cannot look at {}: {}", at->path().string(), std::strerror(errno)));
    }
    if (!S_ISREG(file.st_mode)) continue;
    const auto size = static_cast<std::uintmax_t>(file.st_size);
    const auto synced = synced_size(folder, file.st_ino);
    noted = noted || synced;
    if (synced.value_or(0) >= size) continue;
    fs::resize_file(at->path(), synced.value_or(0), error);
    if (error) break;
    lost += size - synced.value_or(0);
  }
  // The loader only warns if it cannot load the shim.
  if (!noted && !error) return tl::unexpected<std::string>("the server has noted no sync");
  if (error) return tl::unexpected("cannot cut off what was not synced: " + error.message());
  return lost;
}

}  // namespace lockbench::testbed
