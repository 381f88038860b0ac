#include "watch/sources/lock_state.h"

#include <utility>
#include <vector>

namespace lockbench::watch {

Sighting free_lock(std::string name, TimePoint at, Shape shape) {
  Sighting seen;
  seen.lock = std::move(name);
  seen.at = at;
  seen.shape = shape;
  return seen;
}

Sighting queued_lock(std::string name, TimePoint at, Shape shape, const Contenders& queue) {
  Sighting seen = free_lock(std::move(name), at, shape);
  std::vector<Party> waiting;
  for (const auto& [number, contender] : queue) {
    const bool holds = waiting.empty() &&
                       (seen.holders.empty() || (contender.shared && seen.holders.front().shared));
    if (seen.holders.empty()) seen.fence = number;
    (holds ? seen.holders : waiting)
        .push_back(
            {.owner = contender.owner, .shared = contender.shared, .since = contender.since});
  }
  seen.waiters = waiting.size();
  seen.waiting = std::move(waiting);
  return seen;
}

}  // namespace lockbench::watch
