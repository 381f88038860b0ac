#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"

namespace lockbench {

/// Shows one caller which of many connections have input. Thread-safe, except that only one may
/// wait.
class Poller {
 public:
  /// The error says why there can be none: too many open files.
  static tl::expected<std::unique_ptr<Poller>, std::string> make();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller();

  /// Reports the tag once, as soon as this connection has input or is closed. Ignores -1. The
  /// descriptor may be closed without unwatch().
  void watch(int descriptor, std::uint64_t tag);
  void unwatch(int descriptor);
  /// Ends the wait under way, or the next one.
  void wake() noexcept;

  /// Waits for at most `longest` and returns some tags; valid until the next call.
  std::span<const std::uint64_t> wait(Duration longest);

 private:
  static constexpr std::size_t kAtOnce = 64;

  Poller(int epoll, int wake) : epoll_(epoll), wake_(wake) {}

  const int epoll_, wake_;
  std::array<std::uint64_t, kAtOnce> tags_{};
};

}  // namespace lockbench
