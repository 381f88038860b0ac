#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/run/worker.h"

namespace lockbench::loadgen::cluster {

// What one rank has recorded of a run, in a form that another rank adds to its own record of the
// same run: bucket by bucket and count by count, so that nothing is lost and no percentile is
// averaged.

/// Samples of one histogram; the bounds are those of all samples so far.
struct Samples {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;  ///< index and count
  std::uint64_t overflow = 0;
  Duration sum{}, min{}, max{};
};

struct TimingSamples {
  std::uint8_t phase = 0, timing = 0;
  Samples samples;
};
struct CommandSamples {
  std::string command;
  Samples samples;
};
struct NodeSamples {
  std::uint8_t phase = 0;
  std::uint32_t node = 0;
  std::uint8_t vote = 0;
  std::uint64_t votes = 0;
  Samples samples;
};
/// Counts of one client, or of the services.
struct CountsOf {
  static constexpr std::int32_t kServices = -1;
  std::int32_t client = kServices;
  std::uint8_t phase = 0;
  std::uint8_t state = 0;  ///< of a client, now
  std::vector<std::pair<std::uint8_t, std::uint64_t>> counts;
  Duration longest_wait{}, longest_cut{};
};
struct WaitsOf {
  std::int32_t client = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> complete, censored;  ///< bucket and count
};

struct Record {
  std::vector<TimingSamples> timings;
  std::vector<CommandSamples> commands;
  std::vector<NodeSamples> nodes;
  std::vector<CountsOf> counts;
  std::vector<std::pair<std::string, std::uint64_t>> failures;
  std::vector<std::int32_t> used_keys;
  std::vector<CounterTally> tallies;
  std::uint64_t fence_regressions = 0, replicas_wanted = 0, measured_sections = 0;
  std::vector<WaitsOf> waits;  ///< all so far, at the end only
};

/// Takes records of a run while it is under way, each with what has come since the one before. For
/// one thread.
class Recording {
 public:
  explicit Recording(const RunShared& run) : run_(run) {}

  /// `all`: the waits of each client, too, which are many.
  Record take(bool all = false);

 private:
  /// By phase and kind, as they were taken last.
  using Place = std::pair<std::size_t, std::size_t>;

  void take_histograms(Record& record);
  void take_counts(Record& record);
  void take_rest(Record& record);
  void take_waits(Record& record) const;
  static bool take_samples(const ShardedHistogram& histogram, HistogramSnapshot& last,
                           Samples& samples);

  const RunShared& run_;
  std::map<Place, HistogramSnapshot> timings_;
  std::map<std::string, HistogramSnapshot> commands_;
  std::map<std::pair<Place, std::size_t>, std::pair<HistogramSnapshot, std::uint64_t>> nodes_;
  std::map<std::pair<std::int32_t, std::size_t>, Counts> counts_;
  std::map<std::int32_t, ClientState> states_;
  std::map<std::string, std::uint64_t> failures_;
  std::vector<bool> used_;
  std::map<int, CounterTally> tallies_;
  std::uint64_t fence_regressions_ = 0, measured_sections_ = 0;
};

HistogramSnapshot to_snapshot(const Samples& samples);
/// What the later snapshot of a histogram has more; its bounds are those of all samples.
Samples to_samples(const HistogramSnapshot& later, const HistogramSnapshot& earlier);

/// Adds a record of the same run that another rank took. What is no part of such a run is ignored.
/// For one thread, which alone writes to the run.
void absorb(const Record& record, RunShared& run);

}  // namespace lockbench::loadgen::cluster
