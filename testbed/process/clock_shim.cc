#include "testbed/process/clock_shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/server.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

tl::expected<ClockPage*, std::string> map_new_file(const fs::path& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return tl::unexpected(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
  }
  void* page = MAP_FAILED;
  if (ftruncate(file, sizeof(ClockPage)) == 0) {
    page = mmap(nullptr, sizeof(ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int why = errno;
  close(file);
  if (page == MAP_FAILED) {
    return tl::unexpected(fmt::format("cannot map {}: {}", path.string(), std::strerror(why)));
  }
  return static_cast<ClockPage*>(page);
}

}  // namespace

tl::expected<std::unique_ptr<ClockShim>, std::string> ClockShim::make(Testbed& testbed,
                                                                      fs::path library) {
  return attempt([&] {
    if (library.empty()) library = need(find_beside("lockbench-clock-shim.so"));
    const fs::path folder = need(testbed.make_server_folder("clock"));
    fs::path lent = need(testbed.lend(library, folder));
    const fs::path file = folder / "page";
    ClockPage* const page = need(map_new_file(file));
    std::unique_ptr<ClockShim> shim(new ClockShim(std::move(library), std::move(lent), file, page));
    need(testbed.account().own(file));
    return shim;
  });
}

ClockShim::~ClockShim() { munmap(page_, sizeof(ClockPage)); }

void ClockShim::set(std::chrono::nanoseconds ahead) {
  std::atomic_ref(page_->ahead).store(ahead.count());
}

std::int64_t ClockShim::loads() const { return std::atomic_ref(page_->loads).load(); }

void ClockShim::put_under(ServerSpec& server) const {
  const std::vector<std::string> before = {"/usr/bin/env", "LD_PRELOAD=" + lent_.string(),
                                           "LOCKBENCH_CLOCK_FILE=" + file_.string()};
  server.argv.insert(server.argv.begin(), before.begin(), before.end());
}

}  // namespace lockbench::testbed
