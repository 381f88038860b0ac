#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/histogram.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/fault_target.h"
#include "loadgen/run/recovery_meter.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/worker.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// Plays a run's faults while its clients work, and watches what becomes of their throughput. All
/// of it happens on a thread of its own, of which clients know nothing.
class FaultPlayer {
 public:
  /// `faults` as timetable() has them; they, the run, the target and the watcher (which may be
  /// null) outlive the player.
  FaultPlayer(const RunShared& run, const std::vector<Fault>& faults, FaultTarget& target,
              RunWatcher* watcher);
  FaultPlayer(const FaultPlayer&) = delete;
  FaultPlayer& operator=(const FaultPlayer&) = delete;
  /// Heals what still lasts.
  ~FaultPlayer() = default;

  /// When the load begins: the run's times are set.
  void start();

  struct Report {
    std::vector<results::FaultMark> marks;
    std::vector<std::string> failures;  ///< a line for each fault that could not be made or healed
    std::vector<std::string> never_struck;
    /// How late sections began until the first fault, which is not its doing; nothing: none struck.
    std::optional<HistogramSnapshot> lag_before;
  };
  /// When the load is over: heals what still lasts. Once.
  Report finish();

 private:
  using Done = tl::expected<void, std::string>;
  struct Reading {
    TimePoint at;
    std::uint64_t sections = 0;
  };

  void play(const std::stop_token& stop);
  /// From the fault until it is healed and throughput is back, or the next is due.
  void strike(const Fault& fault, std::optional<TimePoint> next_at, const Reading& since,
              const std::stop_token& stop);
  void watch(const Fault& fault, std::optional<TimePoint> next_at,
             std::optional<RecoveryMeter>& recovery, results::FaultMark& mark,
             const std::stop_token& stop);
  Reading read() const;
  bool wait_until(TimePoint when, const std::stop_token& stop) const;
  /// Returns whether it was done; keeps why not.
  bool note(const Fault& fault, const Done& done);
  void tell(const Fault& fault, bool active);
  double since_load(TimePoint when) const;

  const RunShared& run_;
  const std::vector<Fault>& faults_;
  FaultTarget& target_;
  RunWatcher* const watcher_;
  const std::unique_ptr<Env> env_;
  Report report_;  ///< the thread's own while it runs
  std::size_t struck_ = 0;
  std::jthread thread_;
};

}  // namespace lockbench::loadgen
