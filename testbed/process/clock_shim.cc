#include "testbed/process/clock_shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "testbed/failure.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/server.h"

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
  std::vector<std::string> words{"/usr/bin/env"};
  for (const auto& [name, value] : environment())
    words.push_back(fmt::format("{}={}", name, value));
  server.argv.insert(server.argv.begin(), words.begin(), words.end());
}

}  // namespace lockbench::testbed
