#include "strategies/mysql/lock.h"

#include <algorithm>

namespace lockbench::mysql {

Duration time_to_wait(Env& env, TimePoint deadline) {
  constexpr std::chrono::hours kLongest{24 * 365};
  const TimePoint now = env.now();
  if (deadline > now + kLongest) return kLongest;
  return std::max<Duration>(deadline - now, std::chrono::milliseconds(1));
}

}  // namespace lockbench::mysql
