#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loadgen/record/recorder.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"
#include "strategies/descriptor.h"
#include "strategies/duration.h"

namespace lockbench::exporter {

/// A histogram in the exported form: bounds of 5 µs · 2^n, each with one at 1.5 times that, and the
/// samples above. Plain data.
class LatencyBuckets {
 public:
  static constexpr std::size_t kBounds = 49;
  /// In nanoseconds, inclusive. Needs n < kBounds.
  static constexpr std::int64_t bound(std::size_t n) {
    return (n % 2 == 0 ? std::int64_t{5'000} : std::int64_t{7'500}) << n / 2;
  }

  /// Each bucket of the fine histogram is assigned by its midpoint, as its bounds differ from
  /// these: a sample within 0.8 % of a bound may be counted on the other side. Count and sum are
  /// exact.
  void add(const loadgen::HistogramSnapshot& fine);

  std::uint64_t count() const;
  double sum_seconds() const { return seconds(sum_); }
  /// The number of samples at or below bound n.
  std::array<std::uint64_t, kBounds> cumulative() const;

 private:
  std::array<std::uint64_t, kBounds + 1> counts_{};
  Duration sum_{};
};

/// One node of a quorum, by its votes.
struct NodeTotals {
  std::array<std::uint64_t, loadgen::kVotes.size()> votes{};
  std::array<LatencyBuckets, loadgen::kVotes.size()> taken;  ///< without late votes
};

/// Totals since the start of the process, as in the result file: without the warm-up, except for
/// what the audit saw. Plain data.
struct Totals {
  loadgen::ByKind<loadgen::Timing, LatencyBuckets> timings;
  loadgen::Counts counts;
  std::vector<NodeTotals> nodes;
  std::uint64_t overlaps = 0, fence_regressions = 0, fence_resets = 0;
  std::uint64_t lost_updates = 0;  ///< of finished runs: known only at a run's end
  double paused_seconds = 0;       ///< of a probe
};

/// The current state.
struct Present {
  std::uint64_t holders = 0, waiters = 0, clients = 0;
  double target_sections_per_second = 0;               ///< 0: closed loop, or no run
  double ttl_seconds = 0;                              ///< of the latest run
  double jain = 0;                                     ///< of the latest run; 0: no section
  std::uint64_t stuck = 0;                             ///< locks taken, but by no client of the run
  bool connect_failing = false;                        ///< of a probe: see set_connect_failing()
  std::array<bool, loadgen::kFaults.size()> faults{};  ///< by FaultKind: in force
};

/// Constant facts about the process. No secrets.
struct Facts {
  std::vector<std::pair<std::string, std::string>> run;  ///< label names and values
  results::Build build;
  /// The label `deployment` of a strategy's series, by its backend; none: they have no such label.
  std::map<std::string, std::string, std::less<>> deployments{};
  std::string rank{};  ///< the label `rank` of a strategy's series; empty: they have no such label
};

/// All exported figures of one strategy.
struct StrategyMetrics {
  const Descriptor* strategy = nullptr;
  Totals totals;
  Present present;
};

/// The metrics of all runs of this process, readable while runs are under way. Thread-safe; reading
/// never holds up a client.
class RunMetrics : public loadgen::RunWatcher {
 public:
  /// `nodes`: the size of a quorum.
  explicit RunMetrics(const std::vector<const Descriptor*>& strategies, int nodes = 0);

  /// Of every strategy, in the order given.
  std::vector<StrategyMetrics> read() const;

  void run_begins(const loadgen::RunShared& run) override;
  void run_ends(const loadgen::RunShared& run, const results::Run* result) override;
  void fault_changes(const loadgen::RunShared& run, loadgen::FaultKind fault, bool active) override;

  /// Counts `sections` failed sections of a strategy that could not reach its store, each after
  /// this time.
  void not_connected(const Descriptor& strategy, loadgen::FailureReason reason, Duration after,
                     std::uint64_t sections);

  /// A probe's process lives: call it about each second during a run. After the first call, figures
  /// are those of the latest one: since then the process may have stood still, and leases that
  /// expired meanwhile say nothing of the store. A counter that was shown must not be taken back.
  void beat(const Descriptor& strategy);
  /// The process stood still for this time. The current run's figures end with the latest beat.
  void stood_still(const Descriptor& strategy, Duration time);

  /// Sets why a strategy does not work now; nothing, the initial state: it works.
  void set_failing(const Descriptor& strategy, std::optional<std::string> why);
  /// Sets why no new connection to its store could be opened; nothing, the initial state: it could.
  void set_connect_failing(const Descriptor& strategy, std::optional<std::string> why);
  /// "strategy: why" for each that does not work.
  std::vector<std::string> failing() const;

 private:
  struct Entry {
    StrategyMetrics finished;  ///< of the runs that are over
    const loadgen::RunShared* live = nullptr;
    std::optional<std::string> failing{}, connect_failing{};
    /// At the latest beat, including the live run's; nothing before the first.
    std::optional<Totals> at_beat{};
    bool cut = false;  ///< the live run counts up to that beat
  };

  /// Under the mutex. Nothing if the strategy is unknown.
  template <class Change>
  void change(std::string_view strategy, const Change& change);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace lockbench::exporter
