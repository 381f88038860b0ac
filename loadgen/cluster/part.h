#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/live_run.h"

namespace lockbench::loadgen::cluster {

/// All that a rank must know of a run. Has secrets, so it stays in memory.
struct Order {
  std::string run_id, strategy;
  int repetition = 1, number = 1;  ///< `number`: of the run, among all of rank 0's plans
  int ticket = 0;     ///< the order's number, which every message about its run carries
  Workload workload;  ///< of all ranks together
  Endpoints endpoints;
  std::string counter_url;
  std::string metrics;   ///< where the rank serves its own; empty: nowhere
  int ranks_beside = 1;  ///< on the same host, the rank itself included; they share its cores
  bool judges_machine = false;  ///< the rank says whether others took its host's CPU
  /// Where each rank keeps its record, with ".rank-N" appended; empty: nowhere.
  std::string part_path;
  /// A result without runs, as JSON, for the files of ranks.
  std::string heading;
};

/// A rank's host and build.
struct Hello {
  std::string host, build;
  std::string network;  ///< the same for ranks that share loopback addresses
  std::string boot;     ///< of its kernel: the same for ranks that share cores, in any namespace
  int cores = 1;
};

/// All that this process has recorded of its share of a run, which may be under way: bucket by
/// bucket and count by count, so that nothing is lost and no percentile is averaged.
std::string record_of(RunShared& run);
/// Adds the record of the rank with that share of the same run. False, and nothing added, if it is
/// not such a record. For one thread, the only one that writes to the run.
bool absorb(const std::string& record, const Share& share, RunShared& run);

/// A rank's part of a run so far.
struct Part {
  results::Rank row;  ///< the rank's number, its sections, waits, lag and lateness
  Duration measured{};
  double wall_seconds = 0;
  bool complete = false;         ///< the rank ended by itself, or was told to stop
  results::Generator generator;  ///< of this rank alone
  std::string record;
  std::vector<results::SeriesPoint> series;
  /// The waits in each second of the series, each as the bytes of a HistogramSnapshot; none if they
  /// were too many.
  std::vector<std::string> acquired;
};

/// A rank's file: its part, and all that is needed to put parts together.
struct PartFile {
  int ranks = 1;
  Order order;  ///< without secrets: only the number of endpoints
  Hello hello;
  Part part;
};

std::string path_of(const Order& order, int rank);
/// Writes it, all or nothing. Only a lockbench of the same build can read it.
tl::expected<void, std::string> save(const PartFile& file);

bool is_part(const std::string& text);
/// The text may be anything; the error says in one line what is wrong with it.
tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build);

/// Rank 0's knowledge of a rank in a run.
struct RankReport {
  Hello hello;
  /// How much later than the first rank it may have begun, not counting its own lateness.
  Duration delay{};
  bool there = false;  ///< its part is there
  Part part{};
  std::string lost{};  ///< why it is left out, or its part is incomplete

  bool is_settled() const { return there || !lost.empty(); }
};

/// Moves the part into its rank's report. The error says why it is refused.
tl::expected<void, std::string> accept(Part part, std::vector<RankReport>& ranks);

/// Puts the parts together: histograms bucket by bucket, counts as sums, seconds of the series
/// aligned. A rank without a part, or with a damaged record, is left out as lost. Adds the ranks'
/// writes to those that the counter knows. The plan and the strategy must outlive the result.
std::unique_ptr<WholeRun> assemble(const RunPlan& plan, const Descriptor& strategy,
                                   const Order& order, std::unique_ptr<Counter> counter,
                                   std::vector<RankReport>& ranks);

/// Adds the other ranks' load generators; rank 0 judges those on its own host.
void add_to(RunEvidence& evidence, const std::vector<RankReport>& ranks);
/// Adds the ranks to the run: the section `ranks`, the threads and CPU of all, and each rank's
/// reasons to distrust the figures, with its name.
void complete(results::Run& run, int clients, const std::vector<RankReport>& ranks);

/// The plan of an order for this process; the order must outlive it.
RunPlan plan_of(const Order& order, RunPlan plan = {});

/// One run from the files of its ranks. They must be of one run, each rank once; ranks that are
/// missing, or did not end by themselves, are marked as lost.
tl::expected<results::Run, std::string> merge(const std::vector<PartFile>& files);

}  // namespace lockbench::loadgen::cluster
