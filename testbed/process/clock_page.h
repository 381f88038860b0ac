#pragma once

#include <cstdint>

namespace lockbench::testbed {

/// A file mapped by both the server and the process that moves its clock.
struct ClockPage {
  std::int64_t ahead = 0;  ///< of the machine's clock, in nanoseconds; negative if behind
  std::int64_t loads = 0;  ///< number of programs that have loaded the clock
};

}  // namespace lockbench::testbed
