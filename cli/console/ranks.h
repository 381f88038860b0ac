#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "deployment/deployment.h"
#include "loadgen/cluster/link.h"
#include "loadgen/cluster/remote_crew.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"
#include "strategies/thread.h"
#include "testbed/proxy/proxy.h"

namespace lockbench::cli {

/// The ranks of a command that runs under MPI, as rank 0 has them. It is a member of them itself,
/// on a thread of its own. One per process, as MPI is.
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

  int size() const { return link_->size(); }
  /// The stop of the command, which ends rank 0's own clients at once.
  void stop_with(const std::stop_token& stop);
  /// Which rank cannot reach private servers, which listen on the loopback of rank 0; empty: all
  /// can.
  std::string beyond_loopback() const;
  /// Says what makes figures doubtful from the start, such as more ranks than cores.
  void warn(Console& console) const;

  /// For runs on the servers of the latest add_rtts(), whose result goes to `out`. `result` has no
  /// runs yet.
  loadgen::CrewFactory crews(const std::string& out, results::Result result,
                             const RankOptions& options);
  /// Puts proxies between these ranks and the private servers. `servers` outlives the runs. The
  /// error says why there are none.
  tl::expected<void, std::string> add_rtts(const deployment::Deployment& servers,
                                           const RankOptions& options);
  /// Whether a rank was lost, and files of ranks were kept.
  bool lost_some() const { return team_.kept_files; }

 private:
  /// What lies between ranks and the private servers of one deployment.
  struct Zones {
    std::vector<Duration> rtts;    ///< added, by rank
    std::map<int, Endpoints> far;  ///< of ranks with a round-trip time of their own
    std::vector<std::unique_ptr<testbed::Proxy>> lines;

    Endpoints endpoints_of(int rank, Endpoints usual) const;
  };

  explicit Ranks(std::unique_ptr<loadgen::cluster::Link> link) : link_(std::move(link)) {}
  void meet();
  int ranks_beside(std::size_t rank) const;

  std::unique_ptr<loadgen::cluster::Link> link_;
  loadgen::cluster::Team team_;
  std::shared_ptr<const Zones> zones_ = std::make_shared<Zones>();  ///< of the latest deployment
  std::stop_source stop_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> on_stop_;
  Thread member_;
};

/// The whole life of a rank above 0. Returns its exit code.
int serve_rank();

/// The crews of a command's runs: those of the ranks, or this process's own without any. `result`
/// begins the file at `out`.
loadgen::CrewFactory crews_of(const std::string& out, const results::Result& result,
                              const RankOptions& options = {});

/// After the last run: if a rank was lost, marks the result, says what can be done, and returns
/// true.
bool note_lost_ranks(const std::string& out, results::Result& result, Console& console);

}  // namespace lockbench::cli
