#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/cluster/part.h"
#include "loadgen/record/certificate.h"
#include "loadgen/run/joint_run.h"
#include "loadgen/run/worker.h"

namespace lockbench::loadgen::cluster {

/// The parts of a run put together: histograms bucket by bucket, counts as sums, seconds of the
/// series aligned. A rank that has no part is left out, and named. For one thread.
class Assembly {
 public:
  /// `run` has recorded nothing; `hellos`: of all ranks.
  Assembly(std::unique_ptr<RunShared> run, const std::vector<Hello>& hellos);

  /// To which the ranks' writes are added, before the first part.
  void set_counter(std::unique_ptr<Counter> counter) { run_->counter = std::move(counter); }

  /// What is known of a rank before its part comes: how much later than the first one it may have
  /// begun, in addition to what it knows itself.
  void note_delay(int rank, Duration delay) { at(rank).delay = delay; }
  /// The error says why the part cannot be added.
  tl::expected<void, std::string> add(const Part& part);
  void lose(int rank, const std::string& why);

  /// Whether the rank's part is there, or will never be.
  bool knows(int rank) const { return at(rank).there || !at(rank).lost.empty(); }
  bool knows_all() const;
  bool lacks_some() const;

  /// Once: nothing can be added any more.
  std::unique_ptr<WholeRun> take();

  /// Adds the generators of other ranks, of which rank 0 judges those on its own host.
  void add_to(RunEvidence& evidence) const;
  /// Adds to the run what concerns its ranks: the section `ranks`, the threads and CPU of all, and
  /// each rank's reasons against the figures, with its name.
  void complete(results::Run& run) const;

 private:
  /// What is known of a rank apart from the others.
  struct Rank {
    Hello hello;
    int clients = 0;
    bool there = false;
    std::string lost;  ///< why it is left out
    Duration delay{}, late{}, lag_p99{};
    double wall_seconds = 0;
    results::Generator generator;
    HistogramSnapshot acquired;
    std::uint64_t sections = 0;
  };
  /// The same second of several ranks.
  struct SecondSum {
    results::SeriesPoint point;
    HistogramSnapshot acquired;
  };

  Rank& at(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  const Rank& at(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  void add_seconds(const std::vector<Second>& series);
  std::vector<std::string> notes_of(const Rank& rank) const;
  std::vector<results::Rank> table() const;
  /// A line for each host whose ranks together were the bottleneck, though none was alone.
  std::vector<std::string> full_hosts() const;

  std::unique_ptr<RunShared> run_;
  std::vector<Rank> ranks_;
  std::vector<SecondSum> seconds_;
  Duration measured_{};
};

/// One run from the files of its ranks. They must be of one run, each rank once; those that are
/// missing, or that did not end by themselves, are marked as lost.
tl::expected<results::Run, std::string> merge(const std::vector<PartFile>& files);

}  // namespace lockbench::loadgen::cluster
