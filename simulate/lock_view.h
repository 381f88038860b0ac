#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strategies/lease.h"

namespace lockbench::simulate {

/// A key's lock, by what clients do.
class LockView {
 public:
  struct Inside {
    int client;
    Mode mode;
    TimePoint since;
    std::shared_ptr<const LeaseState> lease;
  };

  /// So many clients may be inside at once, of a semaphore.
  explicit LockView(int permits = 1) : permits_(static_cast<std::size_t>(permits)) {}

  void asks(TimePoint now) {
    ++waiting_;
    if (!inside_.empty()) return;
    if (wanted_since_ != TimePoint::max() && waiting_ == 1 && now - idle_since_ > kGrace) {
      end_outage(idle_since_);
    }
    wanted_since_ = std::min(wanted_since_, now);
  }
  void gave_up(TimePoint now) {
    if (--waiting_ == 0) idle_since_ = now;
  }
  /// A holder that excludes it, if there is one.
  const Inside* granted(const Inside& entering) {
    --waiting_;
    end_outage(entering.since);
    const bool fits = entering.mode == Mode::exclusive && inside_.size() < permits_;
    const auto other = std::ranges::find_if(inside_, [&](const Inside& one) {
      const bool exclusive = one.mode == Mode::exclusive;
      return fits ? !exclusive : exclusive || entering.mode == Mode::exclusive;
    });
    rival_ = other == inside_.end() ? std::nullopt : std::optional(*other);
    inside_.push_back(entering);
    return rival_ ? &*rival_ : nullptr;
  }
  void leaves(int client, TimePoint now) {
    std::erase_if(inside_, [&](const Inside& one) { return one.client == client; });
    if (inside_.empty() && waiting_ > 0) wanted_since_ = now;
  }
  void end_outage(TimePoint now) {
    const TimePoint since = std::exchange(wanted_since_, TimePoint::max());
    if (since == TimePoint::max() || now - since <= kGrace) return;
    outage_ += now - since;
    longest_ = std::max(longest_, now - since);
  }

  Duration outage() const { return outage_; }
  Duration longest() const { return longest_; }
  bool wanted() const { return waiting_ > 0; }
  const std::vector<Inside>& inside() const { return inside_; }
  /// Since when it is free and asked for in vain; max(): it is not.
  TimePoint wanted_since() const { return wanted_since_; }

 private:
  // A free lock that is wanted for longer than this is not available: longer than any waiting
  // policy's pauses and than a round trip.
  static constexpr Duration kGrace = std::chrono::seconds(1);

  std::size_t permits_;
  int waiting_ = 0;
  std::vector<Inside> inside_;
  std::optional<Inside> rival_;
  TimePoint wanted_since_ = TimePoint::max(), idle_since_{};  ///< the latter: nobody asks any more
  Duration outage_{}, longest_{};
};

}  // namespace lockbench::simulate
