#include "loadgen/run/schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lockbench::loadgen {
namespace {

// Thirty years: keeps absurdly low rates within 64 bits.
constexpr long double kFarNanoseconds = 1e18L;

}  // namespace

Schedule::Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed,
                   const Share& share)
    : per_second_(per_second), arrival_(arrival), start_(start), share_(share), random_(seed) {
  if (!(per_second > 0) || !std::isfinite(per_second)) {
    throw std::invalid_argument("a schedule's rate must be above 0 and finite");
  }
}

TimePoint Schedule::next() {
  long double gaps = 0;
  {
    const std::scoped_lock lock(mutex_);
    // A share takes at least one of as many starts as there are clients, so this ends.
    bool taken = false;
    while (!taken) {
      if (arrival_ == Arrival::poisson) elapsed_gaps_ += draw_exponential(random_);
      gaps = arrival_ == Arrival::poisson ? elapsed_gaps_ : static_cast<long double>(issued_);
      taken = share_.takes(issued_++);
    }
  }
  // From the start each time, so that rounding to nanoseconds does not add up.
  const long double nanoseconds = std::min(kFarNanoseconds, gaps * 1e9L / per_second_);
  return start_ + Duration(std::llround(nanoseconds));
}

Schedule::Due Schedule::due_before(TimePoint until) {
  const TimePoint first = next();
  if (first >= until) return {};
  const Duration longest = until - first;
  const double own_rate = per_second_ * share_.count() / share_.clients;
  const long double gaps = static_cast<long double>(longest.count()) * own_rate / 1e9L;
  return {static_cast<std::uint64_t>(std::ceil(gaps)), longest};
}

}  // namespace lockbench::loadgen
