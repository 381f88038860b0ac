#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/worker.h"

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

/// Fills `result` from the run and from what the clients recorded: outcomes, distributions, wait
/// anatomy, fairness and audit. `measured` is the length of the measured part. Call after all
/// clients have ended.
void summarise(const RunShared& run, Duration measured, results::Run& result);

/// Samples of all distributions of a run that were above the histograms' range.
std::uint64_t overflowed_samples(results::Run& run);

/// The run's series, one point per call: what happened since the previous call.
class SeriesSampler {
 public:
  explicit SeriesSampler(const RunShared& run) : run_(run) {}
  results::SeriesPoint sample(TimePoint now);
  /// Adds to the last point what finished after it was taken, so that the series adds up to the
  /// totals. Call after all clients have ended.
  void complete(results::SeriesPoint& last);
  /// The acquisitions of the latest sample.
  const HistogramSnapshot& latest() const { return latest_; }

 private:
  const RunShared& run_;
  std::optional<TimePoint> begun_;  ///< start of the next interval; nothing: the load's start
  HistogramSnapshot acquired_, latest_;
  std::uint64_t sections_ = 0, failed_ = 0;
};

/// Makes one run: one strategy under one workload, from connecting to the last release. Blocks
/// until it is over and its keys are removed. `progress` names it to the observer. A stop of
/// `external` ends it early. `joint`, if other processes have a part in it: then the first one has
/// the result. The error says why it could not start.
tl::expected<results::Run, std::string> make_live_run(
    const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
    ProgressObserver& observer, const std::stop_token& external, JointRun* joint = nullptr);

}  // namespace lockbench::loadgen
