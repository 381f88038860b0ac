#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

// GCC defines the first pair, clang answers questions.
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

/// What is left of the frames there may be written again.
inline void unpoison([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef LOCKBENCH_ASAN
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

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

/// Brings memory that is about to be used into the cache.
inline void prefetch(const void* from, std::size_t bytes) noexcept {
  const auto* const first = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(first + at);
}

/// Where a fiber, or the thread that runs fibers, goes on, and what the sanitizers must know of it.
/// For one thread.
class Context {
 public:
  /// The calling thread's.
  Context() noexcept;
  /// Begins in `entry`, which must call arrived(), and must not return.
  Context(Stack stack, void (*entry)(boost::context::detail::transfer_t)) noexcept;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  /// Leaves this context, the caller's, for `to`. Returns when somebody switches back.
  void switch_to(Context& to) noexcept;
  /// The same for good.
  [[noreturn]] void end_in(Context& to) noexcept;
  /// What follows each switch.
  void arrived(boost::context::detail::transfer_t transfer) noexcept;
  /// For a switch to it soon.
  void prefetch_frames() const noexcept { prefetch(at_, kFramesAhead); }

 private:
  // The innermost frames, which the next wait ends in. What lies above takes its time.
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
