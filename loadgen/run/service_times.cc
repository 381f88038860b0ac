#include "loadgen/run/service_times.h"

#include <algorithm>

namespace lockbench::loadgen {
double ServiceTimes::lock_taken(double rate, const LockShare& lock) const {
  return lock.excludes ? std::min(1.0, rate * lock.busiest_key * taken()) : 0;
}

ServiceTimes service_times(std::span<const results::Run> runs) {
  ServiceTimes sum;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  double holds = 0, turnarounds = 0, sections = 0, time = 0;
  for (const results::Run& run : runs) {
    holds += number(run.hold.count);
    sum.hold += number(run.hold.count) * run.hold.mean;
    turnarounds += number(run.turnaround.count);
    sum.turnaround += number(run.turnaround.count) * run.turnaround.mean;
    sections += number(run.sections);
    sum.awaited_share += number(run.awaited_releases);
    time += run.duration_seconds;
  }
  const auto per = [](double total, double count) { return count > 0 ? total / count : 0; };
  sum.hold = per(sum.hold, holds);
  sum.turnaround = per(sum.turnaround, turnarounds);
  sum.awaited_share = std::min(1.0, per(sum.awaited_share, sections));
  sum.per_second = per(sections, time);
  return sum;
}

}  // namespace lockbench::loadgen
