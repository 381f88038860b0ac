#pragma once

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "loadgen/cluster/team.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {

/// The ranks of a command that runs under MPI, as rank 0 has them. One per process, as MPI is.
class Ranks {
 public:
  /// Those of this process; null without a launcher, in other processes than rank 0, and if there
  /// is one rank only.
  static Ranks* joined();

  /// Waits until all ranks are there. A UsageError says which one does not fit, and why.
  static std::unique_ptr<Ranks> join();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  /// Tells all ranks that there are no more runs, and waits for them, for a bounded time.
  ~Ranks();

  /// Which rank cannot reach private servers, which listen on the loopback of rank 0; empty: all
  /// can.
  std::string beyond_loopback() const;
  /// Says what makes figures doubtful from the start, such as more ranks than cores.
  void warn(Console& console) const;

  /// Makes runs whose result goes to `out`. `result` has no runs yet. Each rank serves metrics of
  /// its own, on the port asked for plus its number, and pushes them.
  loadgen::RunMaker maker(const std::string& out, results::Result result,
                          const MetricsOptions& metrics);
  /// Whether a rank was lost, and files of ranks were kept.
  bool lost_some() const { return team_.kept_files; }

 private:
  explicit Ranks(std::unique_ptr<loadgen::cluster::Link> link) : link_(std::move(link)) {}
  void meet();

  std::unique_ptr<loadgen::cluster::Link> link_;
  loadgen::cluster::Team team_;
};

/// The whole life of a rank above 0. Returns its exit code.
int serve_rank();

/// What makes a command's runs: all ranks, or without any nothing. `result` begins the file at
/// `out`.
loadgen::RunMaker maker_of(const std::string& out, const results::Result& result,
                           const MetricsOptions& metrics = {});

/// After the last run: if a rank was lost, says what can be done, and returns true. `out`: the
/// result file.
bool warn_of_lost_ranks(const std::string& out, Console& console);

}  // namespace lockbench::cli
