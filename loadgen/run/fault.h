#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/histogram.h"
#include "strategies/carrier.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

struct RunShared;
class RunWatcher;

enum class FaultKind {
  store_kill,    ///< the lock's server is killed and restarted with its saved data
  store_freeze,  ///< the server is paused
  node_kill,     ///< the same for some of several servers
  node_freeze,
  failover,      ///< the primary or leader is killed and another server takes over
  partition,     ///< a share of the clients' connections is blocked
  delay,         ///< every round trip takes longer
  client_pause,  ///< a client that holds a lock stands still
  client_kill,   ///< it dies: its connections close, and its lock is not released
};

/// Their names, in that order, on the command line, in result files and as metric labels.
inline constexpr std::array<std::string_view, 9> kFaults = {
    "store-kill", "store-freeze", "node-kill",    "node-freeze", "failover",
    "partition",  "delay",        "client-pause", "client-kill"};

std::string_view to_string(FaultKind kind);
/// Whether it strikes a client, and no server.
constexpr bool is_of_client(FaultKind kind) {
  return kind == FaultKind::client_pause || kind == FaultKind::client_kill;
}

struct Fault {
  FaultKind kind = FaultKind::store_kill;
  std::string what;  ///< kind and parameter as given: "partition:0.5"
  /// From the start of the measured part.
  Duration at{};
  /// The requested time from the fault to its healing.
  std::optional<Duration> lasts;  ///< of a client, from the moment that it is struck
  int nodes = 1;                  ///< node_kill, node_freeze: their number
  double share = 0.5;             ///< partition: of the connections
  Duration delay{};               ///< delay: added to each round trip

  /// When it is healed; nothing: at the end of the run. A failover without a length promotes the
  /// new primary immediately.
  std::optional<Duration> heals_at() const;
  /// "partition:0.5@2s+1s"
  std::string to_string() const;
};

/// Reads FAULT[:PARAMETER]@TIME[+D]. The error quotes it and says what is allowed.
tl::expected<Fault, std::string> parse_fault(const std::string& text);

/// Sorts faults by start. They must not overlap and must end within a run of that duration; the
/// error names the fault that does not fit.
tl::expected<std::vector<Fault>, std::string> timetable(std::vector<Fault> faults,
                                                        Duration duration);

/// Whether one of them restarts servers, which the run must then expect.
bool restarts_servers(const std::vector<Fault>& faults);
/// The same, or freezes them, after which they may elect another leader.
bool strikes_servers(const std::vector<Fault>& faults);

/// The servers of a run and the connections to them, on which faults are injected. One call at a
/// time, from any thread. Does not throw.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;

  /// The fault is in force when the call returns. Call heal() afterwards, even after an error.
  virtual tl::expected<void, std::string> inject(const Descriptor& strategy,
                                                 const Fault& fault) = 0;
  /// Returns when the fault is over and the servers are ready for the next one. Takes at most the
  /// servers' time to start.
  virtual tl::expected<void, std::string> heal(const Descriptor& strategy, const Fault& fault) = 0;
};

/// Measures how far throughput falls during a fault and when it recovers, from readings of a
/// growing count. Compares sliding windows with the rate before the fault. For one thread.
class RecoveryMeter {
 public:
  struct Reading {
    TimePoint at;
    std::uint64_t count = 0;
  };

  /// `before` in counts per second, above 0.
  explicit RecoveryMeter(double before);
  /// With the rate of `count` in `time`; nothing if this is too little for a rate.
  static std::optional<RecoveryMeter> after(Duration time, std::uint64_t count);

  /// Length of a window: about 100 counts at the rate before, so that chance does not make a dip.
  Duration window() const { return window_; }

  /// Adds a reading, in order of time. Windows begin with the first reading.
  void read(TimePoint now, std::uint64_t count);
  void healed(TimePoint now);

  /// The start of the first whole window, since the first reading or since healed(), with at least
  /// 90 % of the rate before.
  std::optional<TimePoint> back_at() const { return back_at_; }
  /// Throughput of the worst whole window until recovery, as a share of the rate before; at least 1
  /// if there was no dip, or one that may be chance. 1 before the first whole window.
  double lowest_share() const { return lowest_share_.value_or(1); }

 private:
  const double before_;
  const Duration window_;
  std::deque<Reading> readings_;  ///< of one window, and at most one older
  std::optional<TimePoint> healed_at_;
  std::optional<TimePoint> back_at_;
  std::optional<double> lowest_share_;
};

/// Injects and heals a run's faults while its clients work, and measures their throughput
/// meanwhile. Works beside the runner; clients are not involved.
class FaultPlayer {
 public:
  /// `faults` as from timetable(). They, the run, the target and the watcher (which may be null)
  /// must outlive the player.
  FaultPlayer(const RunShared& run, const std::vector<Fault>& faults, FaultTarget& target,
              RunWatcher* watcher);
  FaultPlayer(const FaultPlayer&) = delete;
  FaultPlayer& operator=(const FaultPlayer&) = delete;

  /// Call when the load begins and the run's times are set.
  void start();

  /// Up to the first fault, so not caused by it.
  struct Before {
    HistogramSnapshot lag, acquire;
  };
  struct Report {
    std::vector<results::FaultMark> marks;
    std::vector<std::string> failures;  ///< a line for each failed injection or healing
    std::vector<std::string> never_struck;
    std::optional<Before> before;  ///< nothing if no fault struck
  };
  /// Call once when the load is over. Heals a fault that is still in force.
  Report finish();

 private:
  using Done = tl::expected<void, std::string>;
  using SectionsDone = RecoveryMeter::Reading;

  void play(const std::stop_token& stop);
  /// Lasts until the fault is healed and throughput has recovered, or the next fault is due.
  void strike(const Fault& fault, std::optional<TimePoint> next_at, const SectionsDone& since,
              const std::stop_token& stop);
  /// Returns when the client is struck; false: the run ends before.
  bool strike_client(const Fault& fault, const std::stop_token& stop);
  Done inject(const Fault& fault);
  Done heal(const Fault& fault);
  void watch(const Fault& fault, std::optional<TimePoint> next_at,
             std::optional<RecoveryMeter>& recovery, results::FaultMark& mark,
             const std::stop_token& stop);
  SectionsDone read() const;
  bool wait_until(TimePoint when, const std::stop_token& stop) const;
  /// Returns whether it succeeded; records the error otherwise.
  bool note(const Fault& fault, const Done& done);
  void tell(const Fault& fault, bool active);
  double since_load(TimePoint when) const;

  const RunShared& run_;
  const std::vector<Fault>& faults_;
  FaultTarget& target_;
  RunWatcher* const watcher_;
  const std::unique_ptr<Env> env_;
  Report report_;  ///< used only by the task while it runs
  std::size_t struck_ = 0;
  std::unique_ptr<Task> task_;
};

}  // namespace lockbench::loadgen
