#pragma once

#include <exception>
#include <functional>

#include "loadgen/fibers/scheduler.h"
#include "tests/support/must.h"

namespace lockbench::test {

/// Runs `body`, and all fibers that it starts, on virtual time (see fibers::Time) on the calling
/// thread. Returns when all have ended; passes on exceptions of `body`.
inline void on_virtual_time(const std::function<void()>& body) {
  // `body` runs a whole run and reads its result, which needs more stack than a client.
  fibers::Stacks stacks(fibers::StackSize{.bytes = std::size_t{512} * 1024});
  const auto scheduler = must(fibers::Scheduler::make(stacks, fibers::Time::virtual_time));
  std::exception_ptr thrown;
  const auto guarded = [&](const std::stop_token&) {
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  const auto task = must(scheduler->start(guarded, {}));
  scheduler->finish();
  scheduler->run();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace lockbench::test
