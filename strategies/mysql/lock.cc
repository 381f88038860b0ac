#include "strategies/mysql/lock.h"

#include <algorithm>

namespace lockbench::mysql {

Duration time_to_wait(Env& env, TimePoint deadline) {
  // The server's limits have room for 365 days.
  constexpr std::chrono::hours kLongest{24 * 364};
  const TimePoint now = env.now();
  if (deadline > now + kLongest) return kLongest;
  return std::max<Duration>(deadline - now, std::chrono::milliseconds(1));
}

}  // namespace lockbench::mysql
