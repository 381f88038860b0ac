#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/part.h"
#include "loadgen/cluster/wire.h"
#include "loadgen/run/live_run.h"
#include "loadgen/run/runner.h"

namespace lockbench::loadgen::cluster {

/// What rank 0 knows of the ranks, and what it tells them beside a run's plan.
struct Team {
  std::vector<Hello> hellos;  ///< by rank
  /// Where each rank keeps its part, with ".rank-N" behind it, and what its file says beside it.
  std::string part_path, heading;
  std::function<std::string(int rank)> metrics_of;  ///< where it serves its own; may be empty
  std::string push;                                 ///< where all push theirs; empty: nowhere
  std::vector<bool> lost;   ///< ranks that are dead or silent; there is no further run
  int tickets = 0;          ///< of orders so far
  bool kept_files = false;  ///< those of ranks are needed

  bool is_complete() const { return std::find(lost.begin(), lost.end(), true) == lost.end(); }
  /// How many are on the same host, itself included.
  int ranks_beside(int rank) const;
};

/// Makes a run of all ranks, of which this process is the first one. A rank that cannot connect
/// fails the run; one that dies or falls silent later is left out of its result and named there.
tl::expected<results::Run, std::string> lead(Link& link, Team& team, const RunPlan& plan,
                                             const Descriptor& strategy, int repetition,
                                             const Progress& progress, ProgressObserver& observer,
                                             const std::stop_token& stop);

/// Serves rank 0 with the clients of this rank: says hello, and does what it orders until it says
/// that there are no more runs, the link's stop comes, or it has not been heard of for long.
/// Blocks. Prints nothing. A stop ends the run under way: what was recorded is saved and told
/// within half a second. Returns whether all ranks leave together. `own`: what this rank adds to
/// each plan. `watcher_of`: who is told of a run; may be empty.
bool serve(Link& link, const Hello& hello, const RunPlan& own,
           const std::function<RunWatcher*(const Order&)>& watcher_of = {});

/// What is said of the run of that order.
template <class T>
std::string about(int ticket, T value) {
  return to_bytes(std::pair(ticket, std::move(value)));
}
/// Nothing unless the message is of that kind and about that order.
template <class T>
std::optional<T> said(const std::optional<Message>& message, Kind kind, int ticket) {
  std::pair<int, T> sent;
  if (!message || message->kind != kind || !from_bytes(message->body, sent)) return std::nullopt;
  return sent.first == ticket ? std::optional(std::move(sent.second)) : std::nullopt;
}

/// What a rank does of a run in the same way as all others: it keeps what it has recorded in a file
/// of its own, every ten seconds, so that a SIGKILL costs no more.
class RankRun : public JointRun {
 public:
  /// The link must outlive it.
  RankRun(Link& link, Order order, Hello hello);

  Share share() const override { return share_; }
  void note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) override;

 protected:
  Part part_of(const PartOfRun& of) const;
  void keep(const Part& part);
  /// Removes the file.
  void forget_file() const;

  Link& link_;
  const Order order_;
  const Hello hello_;
  const Share share_;

 private:
  std::vector<std::string> acquired_;  ///< in each second of the series
  TimePoint next_file_;
  bool saved_ = false;
};

}  // namespace lockbench::loadgen::cluster
