#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "loadgen/run/runner.h"
#include "loadgen/run/worker.h"
#include "results/file/model.h"

namespace lockbench::loadgen::cluster {

/// What every rank must know of a run. Has secrets, so it stays in memory.
struct Order {
  std::string run_id, strategy;
  int repetition = 1, number = 1;  ///< `number`: of the run, among all of rank 0's plans
  int ticket = 0;     ///< of this order among all, which every message about its run has
  Workload workload;  ///< of all ranks together
  Endpoints endpoints;
  std::string counter_url;
  std::string metrics;   ///< where the rank serves its own; empty: nowhere
  std::string push;      ///< likewise where it pushes them
  int ranks_beside = 1;  ///< on the same host, the rank itself included; they share its cores
  bool judges_machine = false;  ///< the rank says whether others took its host's CPU
  /// Where each rank keeps what it has recorded, with ".rank-N" behind it; empty: nowhere.
  std::string part_path;
  /// A result without runs, as JSON: what the file of a rank says beside its record.
  std::string heading;
};

/// Where a rank runs, and what.
struct Hello {
  std::string host, build;
  std::string network;  ///< the same for ranks that share loopback addresses
  std::string boot;  ///< of its kernel: the same for ranks that share cores, in whatever namespace
  int cores = 1;
};

// What one rank has recorded of a run, in a form that is added to a record of the whole run: bucket
// by bucket and count by count, so that nothing is lost and no percentile is averaged.

/// Samples of one histogram.
struct Samples {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets;  ///< index and count
  std::uint64_t overflow = 0;
  Duration sum{}, min{}, max{};
};

/// Counts of one client, or of the services.
struct CountsOf {
  static constexpr std::int32_t kServices = -1;
  std::int32_t client = kServices;
  std::uint8_t phase = 0;
  std::vector<std::pair<std::uint8_t, std::uint64_t>> counts;
  Duration longest_wait{}, longest_cut{};
};
/// Of one client's waits, those of one length.
struct WaitsOf {
  std::int32_t client = 0;
  std::uint32_t bucket = 0;
  bool censored = false;
  std::uint32_t waits = 0;
};

struct Record {
  /// With their places: those of place_of(), and then those of the nodes of a quorum.
  std::vector<std::pair<std::uint32_t, Samples>> histograms;
  std::vector<std::pair<std::string, Samples>> commands;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> votes;  ///< of the nodes, with their places
  std::vector<CountsOf> counts;
  std::vector<std::pair<std::string, std::uint64_t>> failures;
  std::vector<std::int32_t> used_keys;
  std::vector<CounterTally> tallies;
  AuditTotals audit;
  std::uint64_t replicas_wanted = 0;
  std::vector<WaitsOf> waits;
};

constexpr std::uint32_t place_of(Phase phase, Timing timing) {
  return static_cast<std::uint32_t>(phase) * static_cast<std::uint32_t>(Timing::kinds) +
         static_cast<std::uint32_t>(timing);
}

/// Of the clients of the run's share. The run may be under way.
Record record_of(RunShared& run);
/// Adds a record of the same run that another rank took. What is no part of such a run is ignored.
/// For one thread, which alone writes to the run.
void absorb(const Record& record, RunShared& run);

HistogramSnapshot to_snapshot(const Samples& samples);
Samples to_samples(const HistogramSnapshot& snapshot);

/// One second of a rank's load.
struct Second {
  results::SeriesPoint point;
  Samples acquired;
};

/// What a rank has done of a run so far.
struct Part {
  int rank = 0;
  Duration measured{};
  double wall_seconds = 0;
  Duration late{}, lag_p99{};
  bool complete = false;         ///< the rank ended by itself, or was told to stop
  results::Generator generator;  ///< of this rank alone
  Record record;
  std::vector<Second> series;
};

/// The same as a file.
struct PartFile {
  int ranks = 1;
  int nodes = 0;  ///< of a quorum
  Order order;    ///< without secrets
  Hello hello;
  Part part;
};

/// The file of a rank.
std::string path_of(const Order& order, int rank);
/// Writes it, all or nothing. Only a lockbench of the same build can read it.
tl::expected<void, std::string> save(const PartFile& file);

bool is_part(const std::string& text);
/// From anywhere: the error says in one line what is wrong with it.
tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build);

}  // namespace lockbench::loadgen::cluster
