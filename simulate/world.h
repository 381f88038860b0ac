#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "loadgen/run/duration_distribution.h"
#include "simulate/orders.h"
#include "strategies/carrier.h"
#include "strategies/random.h"

namespace lockbench::simulate {

using loadgen::DurationDistribution;

/// Takes one line of a simulation's trace, without its end.
using Trace = std::function<void(const std::string& line)>;

/// Everything that happens in time beside the clients' own fibers: messages under way, servers,
/// faults. On virtual time, on one thread; everything random in it comes from one seed. Made,
/// used and destroyed on fibers of one scheduler.
class World {
 public:
  World(std::uint64_t seed, Trace trace);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  TimePoint now() const { return carrier_.now(); }
  /// Since the world began.
  Duration time() const { return now() - began_; }
  Carrier& carrier() { return carrier_; }
  Random& random() { return random_; }

  /// Calls `act` then, or now if that has passed; those of one time in the order of these calls.
  /// `act` must not wait.
  void at(TimePoint when, std::function<void()> act);
  /// Calls `act` once, when so many of these have been called; 0: never.
  void after(std::uint64_t acts, std::function<void()> act) {
    limit_ = acts;
    at_limit_ = std::move(act);
  }

  void explore(Orders orders) { orders_ = std::move(orders); }
  /// How much later than else this client's next step comes: a delivery or a wake-up.
  Duration late(int client) { return orders_ ? orders_->late(client) : Duration::zero(); }

  bool traced() const { return static_cast<bool>(trace_); }
  /// "12.000300000 client-3 is granted ...": only if traced().
  void trace(std::string_view who, int number, std::string_view what) const;

 private:
  struct Due {
    TimePoint when;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Due& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };

  void play(const std::stop_token& stop);

  Carrier& carrier_;
  const TimePoint began_;
  Random random_;
  std::optional<Orders> orders_;
  const Trace trace_;
  std::vector<Due> due_;  ///< a heap, the earliest first
  std::uint64_t numbers_ = 0, played_ = 0, limit_ = 0;
  std::function<void()> at_limit_;
  TimePoint asleep_until_ = TimePoint::min();
  const std::unique_ptr<Event> earlier_;
  std::unique_ptr<Task> player_;  ///< last
};

/// The clock of a machine. Its monotonic time runs up to `drift` too fast or too slow, but is never
/// more than kMostAhead away from true time, as NTP keeps it. Its time of day may be wrong, and
/// jump.
class Clock {
 public:
  static constexpr Duration kMostAhead = std::chrono::milliseconds(10);

  Clock() = default;
  Clock(Random& random, double drift, Duration offset);

  TimePoint now(TimePoint real) const { return drift_ == 0 ? real : real + ahead(real); }
  /// The earliest real time at which this clock shows `time`.
  TimePoint when(TimePoint time) const;
  WallTime wall(TimePoint real, WallTime real_wall) const {
    return real_wall + (now(real) - real) + offset_;
  }
  void step(Duration by) { offset_ += by; }

 private:
  Duration ahead(TimePoint real) const;

  double drift_ = 0;
  Duration phase_{}, offset_{};
};

/// Events per second, from "3/h": per s, m, h, d or y; at most a thousand.
std::optional<double> parse_rate(std::string_view text);

/// How often and how long the machines of clients stand still, as for a garbage collection.
struct Pauses {
  double share = 0;       ///< of the holds of a lock
  double per_second = 0;  ///< of each client, at any time
  DurationDistribution length{};

  /// Reads "1%@2s" (of the holds) or "3/h@exp(2s)" (of each client's time). The error quotes it.
  static tl::expected<Pauses, std::string> parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const Pauses&) const = default;
};

class HostEnv;
class Relay;
struct Wire;

/// A client's machine, with one process.
class Host {
 public:
  Host(World& world, int number, int region, Clock clock, std::span<const Pauses> pauses);

  const int number, region;
  Clock clock;

  World& world() { return world_; }
  /// The end of the pause at that time; the time itself without one.
  TimePoint resumes(TimePoint time);
  /// Waits while it stands still.
  void pass_pause();
  /// Its processor runs others first.
  void wake_late();
  void pause(TimePoint from, Duration length);
  /// The process stands still until resume(); one of its own fibers that does this goes on to
  /// pass_pause().
  void stop() { stopped_ = true; }
  void resume();
  bool stopped() const { return stopped_; }
  /// A hold begins that is to last so long: it may be struck by a pause.
  void holds(Duration length);
  /// Whether it stood still at some time since then.
  bool paused_since(TimePoint since) const;

  bool dead() const { return dead_; }
  /// The process ends at once: its connections close, and its waits end.
  void kill();
  /// Another process takes its place.
  void revive() { dead_ = false; }

  // Of its process.
  std::vector<HostEnv*> envs;
  std::vector<std::weak_ptr<Wire>> wires;
  std::vector<Event*> polling;   ///< to be set when an answer arrives
  std::map<int, Relay*> relays;  ///< that its connections pass, by the servers' numbers

 private:
  struct Interval {
    TimePoint from, until;
  };

  World& world_;
  std::vector<std::pair<Pauses, TimePoint>> pauses_;  ///< and when the next one of that kind comes
  std::deque<Interval> intervals_;                    ///< the latest, and those to come
  bool dead_ = false, stopped_ = false;
  std::vector<Event*> stopped_waits_;  ///< of its fibers while it is stopped
};

/// The Env of a client, or of one of its services.
class HostEnv final : public Env {
 public:
  HostEnv(Host& host, std::uint64_t seed, bool of_service);
  HostEnv(const HostEnv&) = delete;
  HostEnv& operator=(const HostEnv&) = delete;
  ~HostEnv() override;

  Host& host() { return host_; }
  /// Ends its wait under way.
  void wake() {
    if (waiting_ != nullptr) waiting_->set();
  }

  TimePoint now() override { return host_.clock.now(host_.world().now()); }
  WallTime wall_now() override;
  std::uint64_t random() override { return random_(); }
  std::unique_ptr<Event> make_event() override { return host_.world().carrier().make_event(); }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  CommandFate before_command(const CommandInfo&) override {
    return host_.dead() ? CommandFate::drop : CommandFate::proceed;
  }

 private:
  Host& host_;
  Random random_;
  const bool of_service_;
  std::unique_ptr<Event> own_;  ///< of plain sleeps
  Event* waiting_ = nullptr;
};

}  // namespace lockbench::simulate
