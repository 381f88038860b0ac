#include "loadgen/run/schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

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

void Meetings::expect(int lock, Event* event) {
  const std::scoped_lock guard(mutex_);
  called_.at(static_cast<std::size_t>(lock)).rival = event;
}

bool Meetings::begin(int lock, TimePoint now) {
  const std::scoped_lock guard(mutex_);
  if (under_way_ || static_cast<std::size_t>(lock) != turn_ || now < next_) return false;
  under_way_ = true;
  turn_ = (turn_ + 1) % called_.size();
  next_ = now + every_;
  return true;
}

void Meetings::call(int lock, TimePoint until) {
  const std::scoped_lock guard(mutex_);
  Called& called = called_.at(static_cast<std::size_t>(lock));
  called.until = until;
  if (called.rival != nullptr) called.rival->set();
}

void Meetings::end() {
  const std::scoped_lock guard(mutex_);
  under_way_ = false;
}

TimePoint Meetings::held_until(int lock) const {
  const std::scoped_lock guard(mutex_);
  return called_.at(static_cast<std::size_t>(lock)).until;
}

}  // namespace lockbench::loadgen
