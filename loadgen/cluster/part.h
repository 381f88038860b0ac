#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/live_run.h"

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

/// All that this process has recorded of its share of a run, which may be under way: bucket by
/// bucket and count by count, so that nothing is lost and no percentile is averaged.
std::string record_of(RunShared& run);
/// Adds the record of a rank, which has that share of the same run. False: it is none, and nothing
/// was added. For one thread, which alone writes to the run.
bool absorb(const std::string& record, const Share& share, RunShared& run);

/// What a rank has done of a run so far.
struct Part {
  results::Rank row;  ///< the rank's number, its sections, waits, lag and lateness
  Duration measured{};
  double wall_seconds = 0;
  bool complete = false;         ///< the rank ended by itself, or was told to stop
  results::Generator generator;  ///< of this rank alone
  std::string record;
  std::vector<results::SeriesPoint> series;
  /// The waits in each second of the series, each as the bytes of a HistogramSnapshot.
  std::vector<std::string> acquired;
};

/// A rank's file: its part, and all that is needed to put parts together.
struct PartFile {
  int ranks = 1;
  Order order;  ///< without secrets: of the endpoints only how many there are
  Hello hello;
  Part part;
};

std::string path_of(const Order& order, int rank);
/// Writes it, all or nothing. Only a lockbench of the same build can read it.
tl::expected<void, std::string> save(const PartFile& file);

bool is_part(const std::string& text);
/// From anywhere: the error says in one line what is wrong with it.
tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build);

/// What is known of a rank of a run.
struct RankReport {
  Hello hello;
  /// How much later than the first one it may have begun, beside what it knows itself.
  Duration delay{};
  bool there = false;  ///< its part is
  Part part{};
  std::string lost{};  ///< why it is left out, or why its part is not whole

  bool is_settled() const { return there || !lost.empty(); }
};

/// Moves the part into its rank's report. The error says why it is refused.
tl::expected<void, std::string> accept(Part part, std::vector<RankReport>& ranks);

/// The parts put together: histograms bucket by bucket, counts as sums, seconds of the series
/// aligned. A rank that has no part, or whose record is damaged, is left out and lost. The ranks'
/// writes are added to those that the counter knows. The plan and the strategy outlive the result.
std::unique_ptr<WholeRun> assemble(const RunPlan& plan, const Descriptor& strategy,
                                   const Order& order, std::unique_ptr<Counter> counter,
                                   std::vector<RankReport>& ranks);

/// Adds the generators of other ranks, of which rank 0 judges those on its own host.
void add_to(RunEvidence& evidence, const std::vector<RankReport>& ranks);
/// Adds to the run what concerns its ranks: the section `ranks`, the threads and CPU of all, and
/// each rank's reasons against the figures, with its name.
void complete(results::Run& run, int clients, const std::vector<RankReport>& ranks);

/// The plan of an order, which outlives it, for this process.
RunPlan plan_of(const Order& order, RunPlan plan = {});

/// One run from the files of its ranks. They must be of one run, each rank once; those that are
/// missing, or that did not end by themselves, are marked as lost.
tl::expected<results::Run, std::string> merge(const std::vector<PartFile>& files);

}  // namespace lockbench::loadgen::cluster
