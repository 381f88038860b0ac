#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/cluster/part.h"
#include "loadgen/record/certificate.h"
#include "loadgen/run/live_run.h"

namespace lockbench::loadgen::cluster {

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

/// Takes over a part of a run. The error says why it cannot be added.
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
