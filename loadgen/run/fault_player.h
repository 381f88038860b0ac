#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/histogram.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/recovery_meter.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/worker.h"
#include "results/file/model.h"
#include "strategies/carrier.h"

namespace lockbench::loadgen {

/// Injects and heals a run's faults while its clients work, and measures their throughput
/// meanwhile. Works beside the runner; clients are not involved.
class FaultPlayer {
 public:
  /// `faults` as timetable() has them; they, the run, the target and the watcher (which may be
  /// null) outlive the player.
  FaultPlayer(const RunShared& run, const std::vector<Fault>& faults, FaultTarget& target,
              RunWatcher* watcher);
  FaultPlayer(const FaultPlayer&) = delete;
  FaultPlayer& operator=(const FaultPlayer&) = delete;
  /// Heals a fault that is still in force.
  ~FaultPlayer() = default;

  /// Call when the load begins and the run's times are set.
  void start();

  struct Report {
    std::vector<results::FaultMark> marks;
    std::vector<std::string> failures;  ///< a line for each failed injection or healing
    std::vector<std::string> never_struck;
    /// Schedule lag up to the first fault, which did not cause it; nothing: no fault struck.
    std::optional<HistogramSnapshot> lag_before;
  };
  /// Call once when the load is over. Heals a fault that is still in force.
  Report finish();

 private:
  using Done = tl::expected<void, std::string>;
  /// The sections that had been done at that time.
  struct SectionsDone {
    TimePoint at;
    std::uint64_t sections = 0;
  };

  void play(const std::stop_token& stop);
  /// Lasts until the fault is healed and throughput has recovered, or the next fault is due.
  void strike(const Fault& fault, std::optional<TimePoint> next_at, const SectionsDone& since,
              const std::stop_token& stop);
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
