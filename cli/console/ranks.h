#pragma once

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "loadgen/cluster/team.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {

/// The ranks of a command that runs under MPI, as rank 0 sees them. One per process, like MPI.
class Ranks {
 public:
  /// The ranks of this process; null without a launcher, outside rank 0, and with a single rank.
  static Ranks* joined();

  /// Waits until all ranks are connected. A UsageError says which rank does not fit, and why.
  static std::unique_ptr<Ranks> join();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  /// Tells all ranks that there are no more runs, and waits for them within a bound.
  ~Ranks();

  /// Says which rank cannot reach the private servers on rank 0's loopback; empty: all can.
  std::string beyond_loopback() const;
  /// Warns if a host has more ranks than cores, which makes figures doubtful.
  void warn(Console& console) const;

  /// Makes runs whose result goes to `out`. The ranks' files begin with `result` without its runs.
  /// Each rank serves its own metrics, on the port asked for plus its number, and pushes them.
  loadgen::RunMaker maker(const std::string& out, results::Result result,
                          const MetricsOptions& metrics);
  /// Whether a rank was lost and the ranks' files were kept.
  bool lost_some() const { return team_.kept_files; }

 private:
  explicit Ranks(std::unique_ptr<loadgen::cluster::Link> link) : link_(std::move(link)) {}
  void meet();

  std::unique_ptr<loadgen::cluster::Link> link_;
  loadgen::cluster::Team team_;
};

/// The whole life of a rank above 0. Returns its exit code.
int serve_rank();

/// Makes a command's runs on all ranks; empty without ranks. `result` begins the file at `out`.
loadgen::RunMaker maker_of(const std::string& out, const results::Result& result,
                           const MetricsOptions& metrics = {});

/// Call after the last run. If a rank was lost, says how to merge the ranks' files and returns
/// true. `out`: the result file.
bool warn_of_lost_ranks(const std::string& out, Console& console);

}  // namespace lockbench::cli
