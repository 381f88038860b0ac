#include "strategies/postgres/lock.h"

#include <algorithm>
#include <limits>

namespace lockbench::postgres {

std::int64_t lock_timeout(Env& env, TimePoint deadline) {
  if (deadline == TimePoint::max()) return 0;
  // Rounded up, so that no client gives up early.
  const std::int64_t left = ceil_milliseconds(std::max(deadline - env.now(), Duration(1)));
  return std::min<std::int64_t>(left, std::numeric_limits<std::int32_t>::max());
}

}  // namespace lockbench::postgres
