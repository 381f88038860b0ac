#pragma once

#include <functional>
#include <memory>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// make_strategy(), for a client on the carrier named by the environment variable
/// LOCKBENCH_TEST_CARRIER. With `fibers`, the strategy is made, called and destroyed on fibers
/// while the caller's thread waits. The fibers of all clients share one thread, so a call that
/// blocks it makes some check too slow. Otherwise everything happens on the caller's thread.
std::unique_ptr<LockStrategy> make_carried(const Descriptor& descriptor, const Context& context);

/// Runs `work` on such a fiber, or directly. Passes on its exceptions.
void on_carrier(const std::function<void()>& work);

}  // namespace lockbench::test
