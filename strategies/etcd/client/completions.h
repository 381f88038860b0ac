#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "strategies/env.h"
#include "strategies/thread.h"

namespace lockbench::etcd {

class Completion;

/// Where gRPC tells which operations have ended. A caller with a thread of its own looks there
/// itself: a switch between threads would add 35 us to the 105 of a call on loopback. Callers that
/// share a thread must not block it: all those of the process have one queue, and a thread that
/// looks there and wakes them.
class Completions {
 public:
  /// For whatever the caller runs on. The error says that there is no thread.
  static tl::expected<std::shared_ptr<Completions>, std::string> for_caller();

  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  /// Nothing may be under way any more.
  ~Completions() { queue_.Shutdown(); }

  grpc::CompletionQueue& queue() { return queue_; }
  /// Has an operation started with a tag, and waits for its end, which the call's deadline or its
  /// cancellation must bring. False if it failed.
  template <class Start>
  bool run(const Start& start);

 private:
  friend class Completion;

  /// Looks until `deadline` or, if it is given, the end of `awaited`.
  void look(const Completion* awaited, gpr_timespec deadline);

  grpc::CompletionQueue queue_;
  Thread thread_;  ///< last: it ends with the queue, and is joined first
};

/// The end of one operation of gRPC, which is to be started with tag(). Whoever made it must wait
/// for it, as gRPC writes to the caller's memory until then.
class Completion {
 public:
  explicit Completion(Completions& completions);
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void* tag() { return this; }
  /// False if it has not ended after that time.
  bool ends_within(Duration time);
  /// Waits for its end, which the call's deadline or its cancellation must bring. False if it
  /// failed.
  bool succeeds();

 private:
  friend class Completions;

  bool ends_by(TimePoint deadline);
  void end(bool ok) noexcept;

  Completions& completions_;
  std::unique_ptr<Event> event_;  ///< null: the caller looks itself
  bool ended_ = false;            ///< as the caller knows
  bool ok_ = false;
};

template <class Start>
bool Completions::run(const Start& start) {
  Completion operation(*this);
  start(operation.tag());
  return operation.succeeds();
}

/// A deadline for gRPC, on the monotonic clock.
gpr_timespec from_now(Duration time);

}  // namespace lockbench::etcd
