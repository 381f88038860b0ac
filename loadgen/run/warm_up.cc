#include "loadgen/run/warm_up.h"

#include <algorithm>
#include <utility>

namespace lockbench::loadgen {

WarmUp::WarmUp(TimePoint start, Duration asked, bool until_steady)
    : earliest_end_(start + asked), latest_end_(earliest_end_) {
  if (!until_steady || asked <= Duration::zero() || asked >= kLongest) return;
  latest_end_ = start + kLongest;
  next_look_ = start + kInterval;
}

bool WarmUp::is_steady(TimePoint now, std::uint64_t sections) {
  const std::uint64_t latest = sections - sections_;
  const std::optional<std::uint64_t> before = std::exchange(throughput_, latest);
  sections_ = sections;
  next_look_ = now + kInterval;
  const bool over = now >= latest_end_;
  bool steady = false;
  if (before && now >= earliest_end_) {
    const auto [less, more] = std::minmax(latest, *before);
    steady = static_cast<double>(more - less) <= kSteady * static_cast<double>(more);
  }
  if (over || steady) next_look_.reset();
  return over || steady;
}

}  // namespace lockbench::loadgen
