#pragma once

#include <functional>
#include <memory>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// make_strategy(), for a client on what LOCKBENCH_TEST_CARRIER in the environment says. With
/// `fibers`, it is made, called and destroyed on fibers, while the caller's thread waits; the
/// fibers of all clients share one thread, so a call that blocks it is too slow for some check.
/// Otherwise on the caller's thread.
std::unique_ptr<LockStrategy> make_carried(const Descriptor& descriptor, const Context& context);

/// Does `work` on such a fiber, or at once. Throws what it throws.
void on_carrier(const std::function<void()>& work);

}  // namespace lockbench::test
