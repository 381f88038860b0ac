#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/fibers/pool.h"
#include "loadgen/record/certificate.h"
#include "loadgen/record/histogram.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/local_crew.h"
#include "loadgen/run/run_stores.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/summary.h"
#include "loadgen/run/worker.h"
#include "loadgen/run/workload.h"
#include "results/file/model.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

/// What this process has done of a run so far.
struct PartOfRun {
  RunShared& run;
  const std::vector<results::SeriesPoint>& series;
  Duration measured{};
  double wall_seconds = 0;         ///< of the load
  Duration late{};                 ///< began the load so late
  bool complete = false;           ///< its clients have ended
  results::Generator generator{};  ///< of this process alone, when it is complete
};

/// The run as all processes made it.
struct WholeRun {
  std::unique_ptr<RunShared> run;
  Duration measured{};
  std::vector<results::SeriesPoint> series;
};

/// A run in which several processes, the ranks, have a share of the clients each. All calls come
/// from the runner's thread, in their order here. Every wait is bounded.
class JointRun {
 public:
  virtual ~JointRun() = default;

  virtual Share share() const = 0;
  /// Whether others took its host's CPU is for this rank to say.
  virtual bool judges_machine() const { return false; }

  /// Tells whether the clients of this rank are connected. The first rank waits for those of all.
  /// The error says why the run does not begin.
  virtual tl::expected<void, std::string> ready(tl::expected<void, std::string> own) = 0;
  /// Agrees on when the load begins, by this rank's clock.
  virtual tl::expected<TimePoint, std::string> start() = 0;
  /// The series has a new point, with these acquisitions. `at_once`: the process may soon be
  /// killed.
  virtual void note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) = 0;
  /// This rank's part is complete. The first rank waits for the parts of the others and takes over
  /// the counter; nothing in other ranks.
  virtual std::unique_ptr<WholeRun> gather(const PartOfRun& part) = 0;

  // The first rank only:
  /// Adds what the others used.
  virtual void add_to(RunEvidence& /*evidence*/) const {}
  /// Adds to the finished result what concerns the ranks.
  virtual void complete(results::Run& /*result*/) const {}
};

/// One strategy under one workload, from connecting to the last release.
class LiveRun {
 public:
  /// `progress` names the run to the observer. A stop of `external` ends the run early. `joint`, if
  /// other processes have a part in it.
  LiveRun(const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
          ProgressObserver& observer, std::stop_token external, JointRun* joint = nullptr);

  /// Blocks until the run is over and its keys are removed. The error says why it could not start.
  /// Of several processes the first one has the result.
  tl::expected<results::Run, std::string> execute();

 private:
  /// Until all clients are connected.
  tl::expected<void, std::string> prepare();
  /// From the start of the load to its end; takes at least one sample for the series. Returns when
  /// the load ended.
  TimePoint drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series);
  /// Lets the clients end, and counts what they left.
  void drain(TimePoint measured_until);
  /// Of a joint run, what this process has to show of it. `ended_at`: its load, or so far.
  PartOfRun part_of(const std::vector<results::SeriesPoint>& series, TimePoint ended_at);
  /// Audits the run and makes its result.
  void conclude(const RunShared& all, Duration measured, TimePoint ended_at, WatchedRun& watched,
                results::Run& result);
  void note_failures();
  bool settled(TimePoint now) const;
  TimePoint next_sample_after(TimePoint sampled_at) const;
  void report_load(TimePoint now, bool over);
  void report(Progress::Phase phase, double done);
  void end_faults(results::Run& result);
  /// Time of day minus monotonic clock: constant, unless a clock is set.
  Duration wall_clock_offset();
  /// Of the lock's servers; nothing if none of them tells.
  std::optional<double> server_cpu_seconds(const RunStores::Usage& usage) const;
  RunEvidence evidence_of(const RunShared& all, const RunStores::Usage& usage,
                          TimePoint ended_at) const;
  /// Which figures are the generator's own, and what clients ran on.
  results::Generator generator_of(const RunEvidence& evidence) const;
  /// Of this process alone, as others have a part in the run.
  results::Generator own_generator(TimePoint ended_at) const;
  /// Removes what the run left in the stores, for a bounded time.
  void remove_keys(const RunShared& all);
  /// The command that removes what could not be removed.
  std::string clean_command() const;

  const RunPlan& plan_;
  const int repetition_;
  Progress progress_;
  ProgressObserver& observer_;
  const std::stop_token external_;
  JointRun* const joint_;  ///< null: this process has all clients

  std::unique_ptr<Env> env_;
  /// Of the clients; null if the runner is a fiber itself: then they run beside it. Outlives the
  /// services, which may run there.
  std::unique_ptr<fibers::Pool> pool_;
  RunShared run_;
  RunStores stores_;
  ResourceMeter resources_;
  LocalCrew crew_;  ///< ends before anything that clients use is destroyed
  std::optional<TimePoint> agreed_start_;
  Duration late_{};  ///< began the load so late, as others began it
  Duration wall_clock_before_{}, suspended_before_{};  ///< the load
  std::optional<HistogramSnapshot> lag_before_faults_;
  std::unique_ptr<FaultPlayer> faults_;  ///< last: heals before the clients are joined
};

}  // namespace lockbench::loadgen
