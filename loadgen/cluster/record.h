#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/run/worker.h"

namespace lockbench::loadgen::cluster {

// What one rank has recorded of a run, in a form that is added to a record of the whole run: bucket
// by bucket and count by count, so that nothing is lost and no percentile is averaged.

/// Samples of one histogram.
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
  AuditTotals audit;
  std::uint64_t replicas_wanted = 0;
  std::vector<WaitsOf> waits;
};

/// Of the clients of the run's share. The run may be under way.
Record record_of(const RunShared& run);

HistogramSnapshot to_snapshot(const Samples& samples);
Samples to_samples(const HistogramSnapshot& snapshot);

/// Adds a record of the same run that another rank took. What is no part of such a run is ignored.
/// For one thread, which alone writes to the run.
void absorb(const Record& record, RunShared& run);

}  // namespace lockbench::loadgen::cluster
