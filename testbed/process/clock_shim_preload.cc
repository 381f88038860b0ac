// Preloaded into one server process: moves its wall clock ahead by the nanoseconds in a shared
// file. Monotonic clocks do not change. libfaketime does more, and deadlocks with redis-server's
// allocator.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "testbed/process/clock_page.h"

namespace {

using lockbench::testbed::ClockPage;

constexpr std::int64_t kNanoseconds = 1'000'000'000;

/// Mapped once, when the library is loaded; later reads neither allocate nor lock. Null without a
/// file: then the clock is the machine's.
const volatile ClockPage* page = nullptr;

__attribute__((constructor)) void map_page() {
  const char* path = std::getenv("LOCKBENCH_CLOCK_FILE");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(nullptr, sizeof(ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  auto* const shared = static_cast<ClockPage*>(mapped);
  std::atomic_ref(shared->loads).fetch_add(1);
  page = shared;
}

/// Calls the kernel directly: the C library's functions are replaced here.
int real_clock(clockid_t clock, timespec* time) {
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

void shift(timespec& time) {
  if (page == nullptr) return;
  const std::int64_t now = time.tv_sec * kNanoseconds + time.tv_nsec + page->ahead;
  time.tv_sec = now / kNanoseconds;
  time.tv_nsec = now % kNanoseconds;
}

}  // namespace

extern "C" {

// The C library's names.
// NOLINTBEGIN(readability-identifier-naming)
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real_clock(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) shift(*time);
  return result;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now{};
  if (real_clock(CLOCK_REALTIME, &now) != 0) return -1;
  shift(now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

__attribute__((visibility("default"))) time_t time(time_t* result) noexcept {
  timespec now{};
  if (real_clock(CLOCK_REALTIME, &now) != 0) return -1;
  shift(now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
// NOLINTEND(readability-identifier-naming)

}  // extern "C"
