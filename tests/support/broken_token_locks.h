#pragma once

#include <functional>
#include <map>
#include <memory>

#include "tests/support/broken_locks.h"

namespace lockbench::test {

using Make = std::function<std::unique_ptr<LockStrategy>(const Context&)>;

/// Locks that are derived from the product's own, in place of which they do one thing wrong.
std::map<Flaw, Make> broken_token_locks();

}  // namespace lockbench::test
