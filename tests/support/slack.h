#pragma once

#include "strategies/duration.h"

namespace lockbench::test {

/// What a busy machine may add to an upper bound: a second, and four times the worst stall of a
/// thread that only sleeps for a millisecond at a time, since the present test began. For
/// tests/full/timing.
Duration slack();

}  // namespace lockbench::test
