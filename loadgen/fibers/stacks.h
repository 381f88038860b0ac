#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::fibers {

/// Of a fiber; only what it touches takes memory. With sanitizers, whose frames are larger, it gets
/// several times as much.
struct StackSize {
  std::size_t bytes = std::size_t{64} * 1024;
};

/// Lowest address first, with the guard.
using Stack = std::span<std::byte>;

/// The stacks of fibers, mapped many at once. Thread-safe.
class Stacks {
 public:
  /// Below each stack. More than the largest frame of a strategy, which would else step over it
  /// into the next stack.
  static constexpr std::size_t kGuardBytes = std::size_t{32} * 1024;

  explicit Stacks(StackSize size);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();

  /// The error says why there is no memory.
  tl::expected<Stack, std::string> take();
  /// For another fiber. Its memory is kept: to return it costs more than a fiber.
  void give_back(Stack stack) noexcept;

  /// Ends the program if this stack has overflowed. Where the kernel can guard single pages, the
  /// overflow itself ends the program instead, by SIGSEGV.
  void check(Stack stack) const noexcept {
    if (!guarded_ && !canary_lives(stack)) overflowed();
  }

  /// Returns the memory below `in_use`, which must be above what the caller's callees use.
  void trim(Stack stack, const std::byte* in_use) noexcept;

  /// The most bytes of one stack that were ever used.
  std::size_t high_water() const;

 private:
  static bool canary_lives(Stack stack) noexcept;
  [[noreturn]] void overflowed() const noexcept;
  tl::expected<void, std::string> map_slab();
  std::size_t used(Stack stack) const;
  void note(std::size_t used) const noexcept;

  const std::size_t bytes_;
  const bool guarded_;  ///< by the kernel
  mutable std::mutex mutex_;
  std::vector<std::span<std::byte>> slabs_;
  std::vector<Stack> free_;
  mutable std::atomic<std::size_t> high_water_{0};
};

}  // namespace lockbench::fibers
