#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/part.h"
#include "loadgen/cluster/wire.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {

/// Rank 0's knowledge of the ranks, and its settings for them apart from a run's plan.
struct Team {
  std::vector<Hello> hellos;  ///< by rank
  /// As in Order.
  std::string part_path, heading;
  std::function<std::string(int rank)> metrics_of;  ///< where it serves its own; may be empty
  std::vector<bool> lost;   ///< ranks that are dead or silent; with one, no further run begins
  int tickets = 0;          ///< of orders so far
  bool kept_files = false;  ///< the files of ranks are needed

  bool is_complete() const { return std::find(lost.begin(), lost.end(), true) == lost.end(); }
  /// The number of ranks on the same host, itself included.
  int ranks_beside(int rank) const;
};

/// Makes a run with all ranks; this process is rank 0. A rank that cannot connect fails the run; a
/// rank that dies or falls silent later is left out of the result and named there.
tl::expected<results::Run, std::string> lead(Link& link, Team& team, const RunPlan& plan,
                                             const Descriptor& strategy, int repetition,
                                             const Progress& progress, ProgressObserver& observer,
                                             const std::stop_token& stop);

/// Runs this rank's clients for rank 0: says hello and follows its orders until it ends the runs,
/// the link's stop is requested, or rank 0 is silent for long. Blocks. Prints nothing. A stop ends
/// the run under way; its record is saved and sent within half a second. Returns whether all ranks
/// leave together. `own`: this rank's addition to each plan. `watcher_of`: the watcher of a run;
/// may be empty.
bool serve(Link& link, const Hello& hello, const RunPlan& own,
           const std::function<RunWatcher*(const Order&)>& watcher_of = {});

/// The body of a message about the run of that order.
template <class T>
std::string about(int ticket, T value) {
  return to_bytes(std::pair(ticket, std::move(value)));
}
/// The part of a run that all ranks do in the same way: every ten seconds it saves the rank's
/// record to a file, so that a SIGKILL costs no more. The link must outlive it.
class RankRun : public JointRun {
 public:
  RankRun(Link& link, Order order, Hello hello)
      : link_(link),
        order_(std::move(order)),
        hello_(std::move(hello)),
        share_{link.rank(), link.size(), order_.workload.clients},
        next_file_(link.now() + kBetweenFiles) {}

  Share share() const override { return share_; }
  void note(const PartOfRun& part, const HistogramSnapshot& acquired, bool at_once) override {
    remember(acquired);
    const TimePoint begun = link_.now();
    if (!at_once && begun < next_file_) return;
    keep(part_of(part));
    const TimePoint ended = link_.now();
    next_file_ = ended + std::max(kBetweenFiles, kPauseOfWriting * (ended - begun));
  }

 protected:
  Part part_of(const PartOfRun& of) const {
    const Recorder& recorder = of.run.recorder;
    const auto& timings = recorder.histograms(Phase::measured);
    const HistogramSnapshot acquired = timings[Timing::acquired].snapshot();
    results::Rank row;
    row.rank = static_cast<std::uint64_t>(share_.rank);
    row.sections = recorder.totals(Phase::measured)[Count::sections];
    row.acquire_p50 = seconds(acquired.percentile(0.5));
    row.acquire_p99 = seconds(acquired.percentile(0.99));
    row.lag_p99_seconds = seconds(timings[Timing::wake_lag].snapshot().percentile(0.99));
    row.late_seconds = seconds(of.late);
    return {.row = std::move(row),
            .measured = of.measured,
            .wall_seconds = of.wall_seconds,
            .complete = of.complete,
            .generator = of.generator,
            .record = record_of(of.run),
            .series = of.series,
            .acquired = acquired_};
  }

  void keep(const Part& part) {
    if (order_.part_path.empty()) return;
    PartFile file{.ranks = share_.ranks, .order = order_, .hello = hello_, .part = part};
    // Secrets reach no file.
    for (auto& [set, urls] : file.order.endpoints) urls.assign(urls.size(), "");
    file.order.counter_url.clear();
    saved_ = save(file).has_value() || saved_;  // the run does not fail for it
  }

  void forget_file() const {
    std::error_code ignored;
    if (saved_) std::filesystem::remove(path_of(order_, share_.rank), ignored);
  }

  Link& link_;
  const Order order_;
  const Hello hello_;
  const Share share_;

 private:
  static constexpr Duration kBetweenFiles = std::chrono::seconds(10);
  // The pause is at least this many times as long as the writing.
  static constexpr int kPauseOfWriting = 20;

  /// The waits of one more second. Those of days do not fit in the memory and messages of rank 0:
  /// then a rank has none, and the series shows the highest percentiles of the ranks.
  void remember(const HistogramSnapshot& acquired) {
    const std::size_t most = 2 * kMostBytes / static_cast<std::size_t>(std::max(8, share_.ranks));
    if (acquired_bytes_ > most) return;
    acquired_bytes_ += acquired_.emplace_back(to_bytes(acquired)).size();
    if (acquired_bytes_ > most) acquired_ = {};
  }

  std::vector<std::string> acquired_;  ///< as in Part
  std::size_t acquired_bytes_ = 0;     ///< in all
  TimePoint next_file_;
  bool saved_ = false;
};

}  // namespace lockbench::loadgen::cluster
