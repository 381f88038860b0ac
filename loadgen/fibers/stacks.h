#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

// GCC defines macros for sanitizers; clang has __has_feature.
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define LOCKBENCH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define LOCKBENCH_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define LOCKBENCH_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define LOCKBENCH_TSAN 1
#endif

#ifdef LOCKBENCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LOCKBENCH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define LOCKBENCH_NO_SANITIZE __attribute__((no_sanitize("address", "thread")))

namespace lockbench::fibers {

#if defined(LOCKBENCH_ASAN) || defined(LOCKBENCH_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Allows memory of abandoned frames to be written again.
inline void unpoison([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef LOCKBENCH_ASAN
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

/// The stack of a fiber; only touched pages take memory. With sanitizers, whose frames are larger,
/// it is several times as large.
struct StackSize {
  std::size_t bytes = std::size_t{64} * 1024;
};

/// Lowest address first, guard included.
using Stack = std::span<std::byte>;

/// The stacks of fibers, mapped in slabs. Thread-safe.
class Stacks {
 public:
  /// Below each stack. Larger than any frame of a strategy, which could otherwise step over it into
  /// the next stack.
  static constexpr std::size_t kGuardBytes = std::size_t{32} * 1024;

  explicit Stacks(StackSize size);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();

  /// The error says why there is no memory.
  tl::expected<Stack, std::string> take();
  /// Keeps the memory for another fiber: returning it would cost more than a fiber.
  void give_back(Stack stack) noexcept;

  /// Ends the program if this stack has overflowed. If the kernel can guard single pages, the
  /// overflow itself ends it earlier, by SIGSEGV.
  void check(Stack stack) const noexcept {
    if (!guarded_ && !canary_lives(stack)) overflowed();
  }

  /// Returns the memory below `in_use` to the kernel; the caller's callees must not use it.
  static void trim(Stack stack, const std::byte* in_use) noexcept;

 private:
  static bool canary_lives(Stack stack) noexcept;
  [[noreturn]] void overflowed() const noexcept;
  tl::expected<void, std::string> map_slab();

  const std::size_t bytes_;
  const bool guarded_;  ///< by the kernel
  std::mutex mutex_;
  std::vector<std::span<std::byte>> slabs_;
  std::vector<Stack> free_;
};

inline constexpr std::size_t kCacheLine = 64;

/// Loads memory into the cache for use soon.
inline void prefetch(const void* from, std::size_t bytes) noexcept {
  const auto* const first = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(first + at);
}

/// The point at which a fiber, or the thread that runs fibers, continues, with the sanitizers' data
/// about it. For one thread.
class Context {
 public:
  /// The calling thread's.
  Context() noexcept;
  /// Begins in `entry`, which must call arrived(), and must not return.
  Context(Stack stack, void (*entry)(boost::context::detail::transfer_t)) noexcept;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  /// Leaves this context, the caller's, for `to`. Returns after a switch back.
  void switch_to(Context& to) noexcept;
  /// The same for good.
  [[noreturn]] void end_in(Context& to) noexcept;
  /// Call it after each switch.
  void arrived(boost::context::detail::transfer_t transfer) noexcept;
  /// Call it before a switch to it.
  void prefetch_frames() const noexcept { prefetch(at_, kFramesAhead); }

 private:
  // The innermost frames, which the end of a wait needs first.
  static constexpr std::size_t kFramesAhead = 8 * kCacheLine;

  void announce(Context& to, bool for_good) noexcept;

  boost::context::detail::fcontext_t at_ = nullptr;
#ifdef LOCKBENCH_ASAN
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
#endif
#ifdef LOCKBENCH_TSAN
  bool own_ = false;  ///< made here
  void* tsan_ = nullptr;
#endif
};

}  // namespace lockbench::fibers
