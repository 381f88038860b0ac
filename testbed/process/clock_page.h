#pragma once

#include <cstdint>

namespace lockbench::testbed {

/// What a server's clock shares with whoever moves it: a file that both have mapped.
struct ClockPage {
  std::int64_t ahead = 0;  ///< of the machine's clock, in nanoseconds; negative: behind
  std::int64_t loads = 0;  ///< how many programs have come to run by this clock
};

}  // namespace lockbench::testbed
