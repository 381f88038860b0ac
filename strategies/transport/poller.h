#pragma once

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
  /// Of real connections; those of a simulation have another one. The error says why there can be
  /// none: too many open files.
  static tl::expected<std::unique_ptr<Poller>, std::string> make();
  virtual ~Poller() = default;

  /// Reports the tag once, as soon as this connection has input or is closed. Ignores -1. The
  /// descriptor may be closed without unwatch().
  virtual void watch(int descriptor, std::uint64_t tag) = 0;
  virtual void unwatch(int descriptor) = 0;
  /// Ends the wait under way, or the next one.
  virtual void wake() noexcept = 0;

  /// Waits for at most `longest` and returns some tags; valid until the next call.
  virtual std::span<const std::uint64_t> wait(Duration longest) = 0;
};

}  // namespace lockbench
