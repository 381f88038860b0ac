#pragma once

#include <optional>

#include "loadgen/run/worker.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

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

}  // namespace lockbench::loadgen
