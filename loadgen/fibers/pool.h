#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/fibers/stacks.h"
#include "strategies/carrier.h"

namespace lockbench::fibers {

/// The generator's threads, each of which runs its fibers one after the other. All Tasks must be
/// destroyed before it.
class Pool {
 public:
  /// The error says why a thread or what it needs cannot be had.
  static tl::expected<std::unique_ptr<Pool>, std::string> make(int threads, StackSize stack = {});
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// Runs `body` as a fiber of thread `on` modulo the number of threads. Thread-safe.
  tl::expected<std::unique_ptr<Task>, std::string> start(int on, Carrier::Body body,
                                                         Carrier::OnFailure on_failure);

  int threads() const { return static_cast<int>(lanes_.size()); }
  /// What this thread has used of a processor. Thread-safe.
  Duration cpu_time(int thread) const;

 private:
  /// One thread and its scheduler.
  struct Lane;

  explicit Pool(StackSize stack);

  Stacks stacks_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// Gives back the memory below what the calling fiber uses of its stack now: after connecting,
/// which needs more of it than what follows. Does nothing on a thread of its own.
void trim_stack() noexcept;

}  // namespace lockbench::fibers
