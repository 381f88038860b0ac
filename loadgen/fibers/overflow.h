#pragma once

#include <cstddef>
#include <memory>

namespace lockbench::fibers {

class Scheduler;

/// While it lives, an overflow of the stack of a fiber on this thread, which the kernel's guard
/// ends the program for, is first told on stderr. Does nothing where others handle SIGSEGV.
class OverflowNotice {
 public:
  /// `scheduler` runs on the calling thread.
  explicit OverflowNotice(const Scheduler& scheduler);
  OverflowNotice(const OverflowNotice&) = delete;
  OverflowNotice& operator=(const OverflowNotice&) = delete;
  ~OverflowNotice();

 private:
  std::unique_ptr<std::byte[]> signal_stack_;
};

}  // namespace lockbench::fibers
