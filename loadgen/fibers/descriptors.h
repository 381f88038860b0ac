#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench::fibers {

struct Fiber;

/// The ready descriptors, and the fibers that wait for them. For one thread, except that any may
/// forget() and interrupt().
class Descriptors {
 public:
  /// The error says why it cannot be made: too many open files, or an old kernel.
  static tl::expected<std::unique_ptr<Descriptors>, std::string> make();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors();

  /// As Carrier's. Throws std::system_error if the kernel cannot watch another one.
  void keep(int fd);
  void forget(int fd) noexcept;

  /// Sets `revents` of those that became ready; false if none did. Reports each event once, but a
  /// hang-up always.
  bool take_ready(std::span<pollfd> polled);
  /// Lets harvest() wake this fiber for them. Throws std::logic_error if another fiber waits for
  /// one of them.
  void await(std::span<pollfd> polled, Fiber& fiber);
  /// Call it before each pause: unkept descriptors are one-shot, and kept ones report writability
  /// only while a fiber waits for it. False, with `revents` set, if one cannot be watched as it is
  /// always ready.
  bool arm(std::span<pollfd> polled);
  void leave(std::span<pollfd> polled, const Fiber& fiber) noexcept;

  /// Waits for at most `longest` (max: without a bound) and calls `on_ready(fiber)` for each fiber
  /// whose descriptor is ready.
  template <class OnReady>
  void harvest(Duration longest, OnReady on_ready) {
    const std::span<const epoll_event> events = look(longest);
    for (std::size_t i = 0; i < events.size(); ++i) {
      fetch_ahead(events.subspan(i));
      const epoll_event& event = events[i];
      if (event.data.fd == kInterrupt) continue;
      Watched& watched = table_[event.data.fd];
      watched.note(event.events);
      // An unkept one is reported to both, as it must be armed again.
      const bool both = !watched.is_kept();
      if (watched.reader != nullptr && (both || watched.can_read())) on_ready(*watched.reader);
      if (watched.writer != nullptr && (both || watched.can_write())) on_ready(*watched.writer);
    }
  }
  /// Ends the look under way, or the next one.
  void interrupt() noexcept;

 private:
  static constexpr int kInterrupt = -1;
  static constexpr int kAtOnce = 256;

  /// All zero if nothing is known. In one cache line.
  struct alignas(32) Watched {
    Fiber* reader;
    Fiber* writer;
    bool kept;
    bool forgotten;        ///< since it was kept; set by any thread
    bool armed;            ///< if it is not kept
    bool asks_for_writer;  ///< if it is kept
    // Reported by the kernel and not yet taken.
    bool readable, writable;
    // Permanent: the event of the last data may be the only one.
    bool input_ended, hung_up;

    void note(std::uint32_t events) noexcept;
    bool can_read() const { return readable || input_ended || hung_up; }
    bool can_write() const { return writable || hung_up; }
    void see_nothing() { readable = writable = input_ended = hung_up = false; }
    bool is_kept() noexcept;
    short take(short wanted);
  };

  Descriptors(int epoll, int interrupt, bool precise, std::span<Watched> table)
      : epoll_(epoll),
        interrupt_(interrupt),
        precise_(precise),
        table_(table.data()),
        size_(table.size()) {}

  std::span<const epoll_event> look(Duration longest);
  /// Prefetches, as with thousands of connections the next ones are in no cache.
  void fetch_ahead(std::span<const epoll_event> events) const noexcept {
    constexpr std::size_t kWatchedAhead = 8, kFibersAhead = 4;
    const auto fd_at = [&](std::size_t ahead) {
      return ahead < events.size() ? static_cast<int>(events[ahead].data.fd) : kInterrupt;
    };
    if (const int fd = fd_at(kWatchedAhead); fd >= 0) __builtin_prefetch(&table_[fd]);
    if (const int fd = fd_at(kFibersAhead); fd >= 0) __builtin_prefetch(table_[fd].reader);
  }
  Watched& at(int fd);
  /// False if the kernel refuses; errno says why.
  bool watch(int operation, int otherwise, int if_error, int fd, std::uint32_t events);

  const int epoll_, interrupt_;
  const bool precise_;    ///< the kernel has epoll_pwait2 (5.11), and no filter forbids it
  Watched* const table_;  ///< by number; untouched pages take no memory
  const std::size_t size_;
  std::array<epoll_event, kAtOnce> events_{};
};

}  // namespace lockbench::fibers
