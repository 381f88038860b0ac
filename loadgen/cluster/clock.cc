#include "loadgen/cluster/clock.h"

#include <algorithm>
#include <cmath>

namespace lockbench::loadgen::cluster {
namespace {

// Samples within this time count as one burst, of which the best tells.
constexpr Duration kSameBurst = std::chrono::milliseconds(200);
// Less says nothing of drift.
constexpr Duration kShortestBase = std::chrono::milliseconds(500);

double count(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

ClockSample sample_of(TimePoint asked, TimePoint answered, TimePoint received, Duration error) {
  const Duration half = (received - asked + Duration(1)) / 2;
  const TimePoint middle = asked + (received - asked) / 2;
  return {middle, answered - middle, half + error};
}

void ClockModel::add(const ClockSample& sample) {
  const bool same_burst = !samples_.empty() && sample.local - samples_.back().local < kSameBurst;
  if (!same_burst) {
    if (samples_.size() == kMostSamples) {
      // Of two neighbours the better one; never the first, which the drift is measured from.
      std::vector<ClockSample> kept{samples_.front()};
      for (std::size_t i = 1; i + 1 < samples_.size(); i += 2) {
        const ClockSample &one = samples_[i], &other = samples_[i + 1];
        kept.push_back(one.bound <= other.bound ? one : other);
      }
      samples_ = std::move(kept);
    }
    samples_.push_back(sample);
  } else if (sample.bound < samples_.back().bound) {
    samples_.back() = sample;
  } else {
    return;
  }
  fit();
}

void ClockModel::fit() {
  // The pair of samples that leaves least doubt, of all so far: a busy host has few good ones.
  const ClockSample& last = samples_.back();
  for (const ClockSample& first : samples_) {
    const Duration base = last.local - first.local;
    if (base < kShortestBase) break;
    const double error = count(first.bound + last.bound) / count(base);
    if (error >= drift_error_) continue;
    drift_ = std::clamp(count(last.offset - first.offset) / count(base), -kMostDrift, kMostDrift);
    drift_error_ = error;
  }
}

ClockModel::Estimate ClockModel::at(TimePoint local) const {
  if (own_) return {};
  if (samples_.empty()) return {{}, std::chrono::hours(24)};
  // Where all samples agree that the offset lies now.
  double low = -1e18, high = 1e18;
  for (const ClockSample& sample : samples_) {
    const double apart = count(local - sample.local);
    const double middle = count(sample.offset) + drift_ * apart;
    const double doubt = count(sample.bound) + drift_error_ * std::abs(apart);
    low = std::max(low, middle - doubt);
    high = std::min(high, middle + doubt);
  }
  // Where they contradict each other, anything in between is possible.
  const double middle = (low + high) / 2, bound = std::abs(high - low) / 2;
  return {Duration(std::llround(middle)), Duration(std::llround(std::ceil(bound)))};
}

}  // namespace lockbench::loadgen::cluster
