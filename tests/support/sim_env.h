#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "strategies/env.h"

namespace lockbench {

/// Simulated time, shared by everything that uses it; moves only when a client waits or a test
/// advances it. For one thread.
class SimClock {
 public:
  TimePoint now() const { return now_; }
  WallTime wall_now() const { return WallTime(kWallOffset + now_.time_since_epoch()); }

  /// Runs the actions due on the way, each at its time.
  void advance(Duration duration) { advance_to(now_ + duration); }
  void advance_to(TimePoint time);

  /// Runs `action` at that time.
  void at(TimePoint time, std::function<void()> action) {
    actions_.emplace(time, std::move(action));
  }

  /// Runs the next action due by `limit`, or moves there. Throws std::logic_error if `limit` is the
  /// end of time: nothing could ever end the wait.
  void step(TimePoint limit);

 private:
  static constexpr Duration kWallOffset = std::chrono::hours(24 * 365 * 50);

  TimePoint now_{std::chrono::hours(1)};
  std::multimap<TimePoint, std::function<void()>> actions_;
};

/// The Env of one client on simulated time, for one thread: waiting moves the clock. Its time of
/// day can be wrong. Notes every wait and every command.
class SimEnv : public Env {
 public:
  struct Wait {
    Duration asked{};  ///< Duration::max(): without a deadline
    WaitResult result = WaitResult::timed_out;
  };

  explicit SimEnv(SimClock& clock, std::uint64_t seed = 1) : clock_(clock), random_(seed) {}

  /// How far this client's time of day is ahead (negative: behind).
  void skew_wall_clock(Duration ahead) { skew_ = ahead; }

  const std::vector<Wait>& waits() const { return waits_; }
  /// "before SET", "after SET" or "lost SET", as the connections reported them.
  const std::vector<std::string>& commands() const { return commands_; }

  TimePoint now() override { return clock_.now(); }
  WallTime wall_now() override { return clock_.wall_now() + skew_; }
  std::uint64_t random() override { return random_(); }
  std::unique_ptr<Event> make_event() override;
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

 private:
  WaitResult pass_time(Event* event, TimePoint deadline, const std::stop_token& stop);

  SimClock& clock_;
  std::mt19937_64 random_;
  Duration skew_{};
  std::vector<Wait> waits_;
  std::vector<std::string> commands_;
};

}  // namespace lockbench
