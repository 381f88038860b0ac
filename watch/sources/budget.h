#pragma once

#include <algorithm>
#include <cstdint>
#include <stop_token>

#include "strategies/duration.h"
#include "strategies/env.h"

namespace lockbench::watch {

/// Limits the commands sent to a server: a token bucket with room for one second's worth. While the
/// server answers much later than usual, the rate keeps shrinking, down to a sixteenth. For one
/// thread.
class Budget {
 public:
  explicit Budget(double per_second) : full_(per_second), rate_(per_second) {}

  /// Spends all of them or none.
  bool spend(std::uint64_t commands, TimePoint now) {
    refill(now);
    if (held_ < static_cast<double>(commands)) return false;
    held_ -= static_cast<double>(commands);
    return true;
  }
  /// Waits until they can be spent, and spends them. False: stopped first.
  bool spend_when_possible(std::uint64_t commands, Env& env, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (spend(commands, env.now())) return true;
      env.wait(nullptr, next(commands, env.now()), stop);
    }
    return false;
  }
  /// Returns what was spent and not used.
  void give_back(std::uint64_t commands) { held_ += static_cast<double>(commands); }
  /// Spends in advance, for commands that cannot wait, such as the first ones of a connection.
  void owe(std::uint64_t commands) { held_ -= static_cast<double>(commands); }
  /// When they can be spent, at the present rate.
  TimePoint next(std::uint64_t commands, TimePoint now) {
    refill(now);
    const double lacking = static_cast<double>(commands) - held_;
    if (lacking <= 0) return now;
    return now + std::chrono::duration_cast<Duration>(
                     std::chrono::duration<double>(lacking / std::max(rate_, 1e-3)));
  }
  /// Adapts the rate to the server's latest response time.
  void answered(Duration latency, TimePoint now) {
    constexpr double kRise = 1.001, kWeight = 0.2, kTooMuch = 4, kLowest = 1.0 / 16;
    constexpr double kTolerance = 0.050;  // seconds that a busy machine may add
    constexpr Duration kPace = std::chrono::milliseconds(200);
    const double took = seconds(latency);
    usual_ = usual_ == 0 ? took : std::min(usual_ * kRise, took);
    recent_ = recent_ == 0 ? took : recent_ + kWeight * (took - recent_);
    if (now - changed_at_ < kPace) return;
    changed_at_ = now;
    const bool slow = recent_ > kTooMuch * usual_ + kTolerance;
    refill(now);
    rate_ = slow ? std::max(rate_ * 0.7, full_ * kLowest) : std::min(rate_ * 1.5, full_);
  }
  double rate() const { return rate_; }

 private:
  void refill(TimePoint now) {
    if (filled_at_ != TimePoint{}) held_ += rate_ * seconds(now - filled_at_);
    // A look spends several commands together, even if the budget is smaller than that.
    constexpr double kLeast = 8;
    held_ = std::min(held_, std::max(rate_, kLeast));
    filled_at_ = now;
  }

  const double full_;
  double rate_, held_ = full_;
  TimePoint filled_at_{};
  double usual_ = 0, recent_ = 0;  ///< response times in seconds; 0: unknown
  TimePoint changed_at_{};
};

}  // namespace lockbench::watch
