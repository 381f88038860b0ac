#pragma once

#include <optional>

#include "loadgen/run/worker.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

/// Turns what the clients recorded into the figures of the result file: outcomes, distributions,
/// wait anatomy, fairness and audit. `measured` is the length of the measured part. Call when no
/// client works any more.
void summarise(const RunShared& run, Duration measured, results::Run& result);

/// The run's series, one point a call: what happened since the call before.
class SeriesSampler {
 public:
  explicit SeriesSampler(const RunShared& run) : run_(run) {}
  results::SeriesPoint sample(TimePoint now);
  /// Adds to the last point what was finished after it was taken, so that the series adds up to the
  /// totals. Call when no client works any more.
  void complete(results::SeriesPoint& last);

 private:
  const RunShared& run_;
  std::optional<TimePoint> begun_;  ///< of the interval to come, once there was one before it
  HistogramSnapshot acquired_;
  std::uint64_t sections_ = 0, failed_ = 0;
};

}  // namespace lockbench::loadgen
