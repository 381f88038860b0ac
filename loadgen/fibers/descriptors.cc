#include "loadgen/fibers/descriptors.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace lockbench::fibers {
namespace {

// More than a process can usually open; without this bound, a table for "unlimited" would take
// terabytes.
constexpr rlim_t kMostDescriptors = rlim_t{1} << 22;

// Without EPOLLOUT: a unix socket becomes writable whenever the server has read a request, so each
// command would cost another event, and a lone client a wake-up before its answer.
constexpr std::uint32_t kKeptEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;

/// The hard limit, as the soft one can be raised later.
std::size_t most_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostDescriptors;
  return std::min(limit.rlim_max, kMostDescriptors);
}

/// Polls one descriptor without waiting.
bool is_ready(pollfd& polled) { return ::poll(&polled, 1, 0) > 0; }

void claim(Fiber*& place, Fiber& fiber) {
  if (place != nullptr && place != &fiber) {
    throw std::logic_error("two fibers wait for the same descriptor");
  }
  place = &fiber;
}

}  // namespace

tl::expected<std::unique_ptr<Descriptors>, std::string> Descriptors::make() {
  const std::size_t size = most_descriptors();
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int interrupt = epoll < 0 ? -1 : ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Edge-triggered, it need not be read.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = kInterrupt}};
  if (interrupt >= 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, interrupt, &event) == 0) {
    const timespec now{};
    const bool precise = ::epoll_pwait2(epoll, &event, 1, &now, nullptr) >= 0;
    void* const table = ::mmap(nullptr, size * sizeof(Watched), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table != MAP_FAILED) {
      return std::unique_ptr<Descriptors>(
          new Descriptors(epoll, interrupt, precise, {static_cast<Watched*>(table), size}));
    }
  }
  const std::string why = std::system_category().message(errno);
  if (interrupt >= 0) ::close(interrupt);
  if (epoll >= 0) ::close(epoll);
  return tl::unexpected("connections cannot be watched: " + why);
}

Descriptors::~Descriptors() {
  ::munmap(table_, size_ * sizeof(Watched));
  ::close(interrupt_);
  ::close(epoll_);
}

void Descriptors::keep(int fd) {
  Watched& watched = at(fd);
  if (watched.is_kept()) return;
  watched.see_nothing();
  // Reports immediately if it is already ready. It exists if it was forgotten but not closed.
  if (!watch(EPOLL_CTL_ADD, EPOLL_CTL_MOD, EEXIST, fd, kKeptEvents)) {
    throw std::system_error(errno, std::system_category(), "a connection cannot be watched");
  }
  watched.kept = true;
  watched.asks_for_writer = false;
  std::atomic_ref(watched.forgotten).store(false, std::memory_order_relaxed);
}

void Descriptors::forget(int fd) noexcept {
  if (fd < 0 || static_cast<std::size_t>(fd) >= size_) return;
  std::atomic_ref(table_[fd].forgotten).store(true, std::memory_order_release);
}

bool Descriptors::take_ready(std::span<pollfd> polled) {
  bool any = false;
  for (pollfd& one : polled) {
    one.revents = 0;
    if (one.fd < 0) continue;
    Watched& watched = at(one.fd);
    if (watched.is_kept()) {
      one.revents = watched.take(one.events);
    } else {
      // The reported event may be for another fiber, or for an earlier file with this number.
      is_ready(one);
    }
    any = any || one.revents != 0;
  }
  return any;
}

void Descriptors::await(std::span<pollfd> polled, Fiber& fiber) {
  for (const pollfd& one : polled) {
    if (one.fd < 0) continue;
    Watched& watched = at(one.fd);
    watched.armed = false;
    if ((one.events & POLLIN) != 0) claim(watched.reader, fiber);
    if ((one.events & POLLOUT) != 0) claim(watched.writer, fiber);
  }
}

bool Descriptors::arm(std::span<pollfd> polled) {
  for (pollfd& one : polled) {
    if (one.fd < 0) continue;
    Watched& watched = at(one.fd);
    const bool kept = watched.is_kept();
    const bool writes = watched.writer != nullptr;
    bool& armed = kept ? watched.asks_for_writer : watched.armed;
    if (armed || (kept && !writes)) continue;
    const std::uint32_t incoming = watched.reader != nullptr ? EPOLLIN | EPOLLRDHUP : 0U;
    const std::uint32_t events =
        (kept ? kKeptEvents : incoming | EPOLLONESHOT) | (writes ? EPOLLOUT : 0U);
    // Reports immediately if it is already ready, even edge-triggered.
    armed = watch(EPOLL_CTL_MOD, EPOLL_CTL_ADD, ENOENT, one.fd, events);
    if (armed) continue;
    const int error = errno;
    if (is_ready(one)) return false;  // a file, or not open
    throw std::system_error(error, std::system_category(), "a connection cannot be watched");
  }
  return true;
}

void Descriptors::leave(std::span<pollfd> polled, const Fiber& fiber) noexcept {
  for (const pollfd& one : polled) {
    if (one.fd < 0 || static_cast<std::size_t>(one.fd) >= size_) continue;
    Watched& watched = table_[one.fd];
    if (watched.reader == &fiber) watched.reader = nullptr;
    if (watched.writer != &fiber) continue;
    watched.writer = nullptr;
    if (!watched.asks_for_writer || !watched.is_kept()) continue;
    watched.asks_for_writer = !watch(EPOLL_CTL_MOD, EPOLL_CTL_ADD, ENOENT, one.fd, kKeptEvents);
  }
}

void Descriptors::interrupt() noexcept {
  const std::uint64_t one = 1;
  // Can only fail if an earlier interrupt() already ends the look.
  [[maybe_unused]] const auto written = ::write(interrupt_, &one, sizeof one);
}

std::span<const epoll_event> Descriptors::look(Duration longest) {
  const timespec limit = to_timespec(longest);
  const timespec* const bound = longest == Duration::max() ? nullptr : &limit;
  int count = 0;
  if (precise_) {
    count = ::epoll_pwait2(epoll_, events_.data(), kAtOnce, bound, nullptr);
  } else {
    // The milliseconds of epoll_wait are too coarse for holds and backoffs.
    pollfd any{.fd = epoll_, .events = POLLIN, .revents = 0};
    if (longest > Duration::zero()) ::ppoll(&any, 1, bound, nullptr);
    count = ::epoll_wait(epoll_, events_.data(), kAtOnce, 0);
  }
  return {events_.data(), static_cast<std::size_t>(std::max(count, 0))};
}

Descriptors::Watched& Descriptors::at(int fd) {
  if (static_cast<std::size_t>(fd) >= size_) throw std::length_error("too many open files");
  return table_[fd];
}

bool Descriptors::watch(int operation, int otherwise, int if_error, int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_, operation, fd, &event) == 0) return true;
  return errno == if_error && ::epoll_ctl(epoll_, otherwise, fd, &event) == 0;
}

void Descriptors::Watched::note(std::uint32_t events) noexcept {
  armed = false;
  readable = readable || (events & EPOLLIN) != 0;
  writable = writable || (events & EPOLLOUT) != 0;
  input_ended = input_ended || (events & EPOLLRDHUP) != 0;
  hung_up = hung_up || (events & (EPOLLHUP | EPOLLERR)) != 0;
}

bool Descriptors::Watched::is_kept() noexcept {
  return kept && !std::atomic_ref(forgotten).load(std::memory_order_acquire);
}

short Descriptors::Watched::take(short wanted) {
  int ready = hung_up ? POLLHUP : 0;
  if ((wanted & POLLIN) != 0 && can_read()) ready |= POLLIN;
  if ((wanted & POLLOUT) != 0 && can_write()) ready |= POLLOUT;
  if ((wanted & POLLIN) != 0) readable = false;
  if ((wanted & POLLOUT) != 0) writable = false;
  return static_cast<short>(ready);
}

}  // namespace lockbench::fibers
