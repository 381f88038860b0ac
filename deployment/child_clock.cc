#include "deployment/child_clock.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "testbed/servers/machine.h"

namespace lockbench::deployment {

tl::expected<std::unique_ptr<ChildClock>, std::string> ChildClock::make() {
  const auto library = testbed::find_beside("lockbench-clock-shim.so");
  if (!library) return tl::unexpected(library.error());
  const int file = memfd_create("lockbench-clock", MFD_CLOEXEC);
  void* page = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(testbed::ClockPage)) == 0) {
    page = mmap(nullptr, sizeof(testbed::ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (page == MAP_FAILED) {
    const int why = errno;
    if (file >= 0) close(file);
    return tl::unexpected(fmt::format("no memory for a clock: {}", std::strerror(why)));
  }
  setenv("LD_PRELOAD", library->c_str(), 1);
  setenv("LOCKBENCH_CLOCK_FILE", fmt::format("/proc/{}/fd/{}", getpid(), file).c_str(), 1);
  return std::unique_ptr<ChildClock>(new ChildClock(file, static_cast<testbed::ClockPage*>(page)));
}

ChildClock::~ChildClock() {
  munmap(page_, sizeof(testbed::ClockPage));
  close(file_);
}

void ChildClock::shift(Duration by) { std::atomic_ref(page_->ahead).fetch_add(by.count()); }

std::int64_t ChildClock::loads() const { return std::atomic_ref(page_->loads).load(); }

}  // namespace lockbench::deployment
