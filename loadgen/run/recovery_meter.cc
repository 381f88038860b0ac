#include "loadgen/run/recovery_meter.h"

#include <algorithm>

namespace lockbench::loadgen {
namespace {

constexpr double kBackShare = 0.9;
constexpr double kCountsInWindow = 100;
constexpr Duration kShortestWindow = std::chrono::milliseconds(100);
constexpr Duration kLongestWindow = std::chrono::seconds(1);
constexpr Duration kShortestBefore = std::chrono::milliseconds(100);
constexpr std::uint64_t kFewestBefore = 20;

Duration window_for(double rate) {
  const std::chrono::duration<double> wanted(kCountsInWindow / rate);
  if (wanted >= kLongestWindow) return kLongestWindow;
  return std::max(kShortestWindow, std::chrono::duration_cast<Duration>(wanted));
}

}  // namespace

RecoveryMeter::RecoveryMeter(double before) : before_(before), window_(window_for(before)) {}

std::optional<RecoveryMeter> RecoveryMeter::after(Duration time, std::uint64_t count) {
  if (time < kShortestBefore || count < kFewestBefore) return std::nullopt;
  return RecoveryMeter(static_cast<double>(count) / seconds(time));
}

void RecoveryMeter::read(TimePoint now, std::uint64_t count) {
  readings_.push_back({now, count});
  // Keep the latest reading that still makes a whole window with this one.
  while (readings_.size() > 1 && now - readings_[1].at >= window_) readings_.pop_front();
  const Reading& first = readings_.front();
  if (now - first.at < window_) return;
  const double share = static_cast<double>(count - first.count) / seconds(now - first.at) / before_;
  const bool over = healed_at_ && back_at_;
  if (!over) lowest_share_ = std::min(lowest_share_.value_or(share), share);
  const bool in_time = !healed_at_ || first.at >= *healed_at_;
  if (in_time && !back_at_ && share >= kBackShare) back_at_ = first.at;
}

void RecoveryMeter::healed(TimePoint now) {
  healed_at_ = now;
  back_at_.reset();
}

}  // namespace lockbench::loadgen
