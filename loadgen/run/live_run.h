#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

/// This process's part of a run so far.
struct PartOfRun {
  RunShared& run;
  const std::vector<results::SeriesPoint>& series;
  Duration measured{};
  double wall_seconds = 0;         ///< of the load
  Duration late{};                 ///< how late it began the load
  bool complete = false;           ///< its clients have ended
  results::Generator generator{};  ///< of this process alone, when it is complete
};

/// The run as all processes made it.
struct WholeRun {
  std::unique_ptr<RunShared> run;
  Duration measured{};
  std::vector<results::SeriesPoint> series;
};

/// A run of several processes, the ranks, each with a share of the clients. All calls come from the
/// runner's thread, in this order. Every wait is bounded.
class JointRun {
 public:
  virtual ~JointRun() = default;

  virtual Share share() const = 0;
  /// Whether this rank judges if other programs took its host's CPU.
  virtual bool judges_machine() const { return false; }

  /// Reports whether the clients of this rank are connected. The first rank waits for all ranks.
  /// The error says why the run does not begin.
  virtual tl::expected<void, std::string> ready(tl::expected<void, std::string> own) = 0;
  /// Agrees on the load's start; returns it by this rank's clock.
  virtual tl::expected<TimePoint, std::string> start() = 0;
  /// The series has a new point, with these acquisitions. `at_once`: save now, as the process may
  /// soon be killed.
  virtual void note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) = 0;
  /// This rank's part is complete. The first rank waits for the parts of the others and takes over
  /// the counter; other ranks return null.
  virtual std::unique_ptr<WholeRun> gather(const PartOfRun& part) = 0;

  // The first rank only:
  /// Adds the other ranks' evidence.
  virtual void add_to(RunEvidence& /*evidence*/) const {}
  /// Adds the ranks to the finished result.
  virtual void complete(results::Run& /*result*/) const {}
};

/// Fills `result` from the run and the clients' records: outcomes, distributions, wait anatomy,
/// fairness and audit. `measured` is the length of the measured part. Call after all clients have
/// ended.
void summarise(const RunShared& run, Duration measured, results::Run& result);

/// Samples of all distributions of a run that were above the histograms' range.
std::uint64_t overflowed_samples(results::Run& run);

/// The run's series: one point per call, over the time since the previous call.
class SeriesSampler {
 public:
  explicit SeriesSampler(const RunShared& run) : run_(run) {}
  results::SeriesPoint sample(TimePoint now);
  /// Adds later events to the last point, so that the series adds up to the totals. Call after all
  /// clients have ended.
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
/// `external` ends it early. `joint` is for a run of several processes, of which the first has the
/// result. The error says why it could not start.
tl::expected<results::Run, std::string> make_live_run(
    const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
    ProgressObserver& observer, const std::stop_token& external, JointRun* joint = nullptr);

}  // namespace lockbench::loadgen
