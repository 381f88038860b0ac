#include "testbed/process/shims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

ClockPage* map_file(const fs::path& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* page = MAP_FAILED;
  if (file >= 0) {
    page = mmap(nullptr, sizeof(ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int why = errno;
  if (file >= 0) close(file);
  if (page != MAP_FAILED) return static_cast<ClockPage*>(page);
  throw Failure(fmt::format("cannot map {}: {}", path.string(), std::strerror(why)));
}

/// As the shim has noted it; nothing if the file was never synced.
std::optional<std::uintmax_t> synced_size(const fs::path& folder, ino_t file) {
  std::int64_t size = 0;
  std::ifstream record(folder / fmt::format("synced-{}", file), std::ios::binary);
  if (!record.read(reinterpret_cast<char*>(&size), sizeof(size)) || size < 0) return std::nullopt;
  return static_cast<std::uintmax_t>(size);
}

}  // namespace

tl::expected<std::unique_ptr<ClockShim>, std::string> ClockShim::make(Testbed& testbed,
                                                                      fs::path library) {
  return attempt([&] {
    if (library.empty()) library = need(find_beside("lockbench-clock-shim.so"));
    const fs::path folder = need(testbed.make_server_folder("clock"));
    fs::path lent = need(testbed.lend(library, folder));
    const fs::path file = folder / "page";
    need(testbed.write_file(file, std::string(sizeof(ClockPage), '\0')));
    ClockPage* const page = map_file(file);
    return std::unique_ptr<ClockShim>(
        new ClockShim(std::move(library), std::move(lent), file, page));
  });
}

ClockShim::~ClockShim() { munmap(page_, sizeof(ClockPage)); }

void ClockShim::set(std::chrono::nanoseconds ahead) {
  std::atomic_ref(page_->ahead).store(ahead.count());
}

std::int64_t ClockShim::loads() const { return std::atomic_ref(page_->loads).load(); }

std::map<std::string, std::string> ClockShim::environment() const {
  return {{"LD_PRELOAD", lent_.string()}, {"LOCKBENCH_CLOCK_FILE", file_.string()}};
}

void ClockShim::put_under(ServerSpec& server) const {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment()) {
    variables.push_back(fmt::format("{}={}", name, value));
  }
  server.set(std::move(variables));
}

void put_under_sync_shim(const Testbed& testbed, ServerSpec& server) {
  const auto shim = need(testbed.lend(need(find_beside("lockbench-sync-shim.so")), server.folder));
  server.set({"LD_PRELOAD=" + shim.string(), "LOCKBENCH_SYNCED=" + server.folder.string()});
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
