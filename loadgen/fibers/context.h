#pragma once

#include <boost/context/detail/fcontext.hpp>

#include "loadgen/fibers/sanitizers.h"
#include "loadgen/fibers/stacks.h"

namespace lockbench::fibers {

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

 private:
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
