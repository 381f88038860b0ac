#pragma once

#include <algorithm>
#include <cstdint>
#include <stop_token>

#include "strategies/duration.h"
#include "strategies/env.h"

namespace lockbench::watch {

/// How many commands a server may be sent: a token bucket that holds those of one second. When the
/// server answers much later than it usually does, the rate shrinks again and again, to a sixteenth
/// at least, until its answers come in time. For one thread.
class Budget {
 public:
  explicit Budget(double per_second) : full_(per_second), rate_(per_second) {}

  /// All of them, or none.
  bool spend(std::uint64_t commands, TimePoint now) {
    refill(now);
    if (held_ < static_cast<double>(commands)) return false;
    held_ -= static_cast<double>(commands);
    return true;
  }
  /// Waits until so many can be spent, and spends them. False: a stop came first.
  bool spend_when_possible(std::uint64_t commands, Env& env, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (spend(commands, env.now())) return true;
      env.wait(nullptr, next(commands, env.now()), stop);
    }
    return false;
  }
  /// For what must be sent, such as the first commands of a connection.
  void owe(std::uint64_t commands) { held_ -= static_cast<double>(commands); }
  /// When so many can be spent, at the present rate.
  TimePoint next(std::uint64_t commands, TimePoint now) {
    refill(now);
    const double lacking = static_cast<double>(commands) - held_;
    if (lacking <= 0) return now;
    return now + std::chrono::duration_cast<Duration>(
                     std::chrono::duration<double>(lacking / std::max(rate_, 1e-3)));
  }
  /// How long the server took to answer.
  void answered(Duration latency, TimePoint now) {
    constexpr double kRise = 1.001, kWeight = 0.2, kTooMuch = 4, kLowest = 1.0 / 16;
    constexpr double kTolerance = 0.050;  // what a busy machine adds by itself, in seconds
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
    // A look takes a few commands together, also of a budget below that.
    constexpr double kLeast = 8;
    held_ = std::min(held_, std::max(rate_, kLeast));
    filled_at_ = now;
  }

  const double full_;
  double rate_, held_ = full_;
  TimePoint filled_at_{};
  double usual_ = 0, recent_ = 0;  ///< latencies in seconds; 0: not known
  TimePoint changed_at_{};
};

}  // namespace lockbench::watch
