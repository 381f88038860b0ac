#pragma once

#include <cstdint>

namespace lockbench::testbed {

/// A file that the server and the process which moves its clock have both mapped.
struct ClockPage {
  std::int64_t ahead = 0;  ///< of the machine's clock, in nanoseconds; negative: behind
  std::int64_t loads = 0;  ///< number of programs that have loaded the clock
};

}  // namespace lockbench::testbed
