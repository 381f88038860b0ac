#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "loadgen/fibers/sanitizers.h"
#include "loadgen/fibers/stacks.h"

namespace lockbench::fibers {

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
