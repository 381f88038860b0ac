#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/latency_buckets.h"
#include "loadgen/record/recorder.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/run_watcher.h"
#include "strategies/descriptor.h"

namespace lockbench::exporter {

/// Of one node of a quorum, each by what it said.
struct NodeTotals {
  std::array<std::uint64_t, loadgen::kVotes.size()> votes{};
  std::array<LatencyBuckets, loadgen::kVotes.size()> taken;  ///< of those that were waited for

  NodeTotals& operator+=(const NodeTotals& more);
};

/// What only grows, from the start of the process, warm-up included. Plain data.
struct Totals {
  std::array<LatencyBuckets, loadgen::kOutcomes.size()> acquire;
  LatencyBuckets hold, release, handoff, schedule_lag, loss_to_knowledge;
  LatencyBuckets renewal_duration, renewal_slip, renewal_margin, quorum_validity;
  std::vector<NodeTotals> nodes;
  loadgen::Counts counts;
  loadgen::ServiceCounts services;
  loadgen::QuorumCounts quorum;
  std::uint64_t overlaps = 0, fence_regressions = 0, stale_rejected = 0;
  std::uint64_t lost_updates = 0;  ///< of runs that are over: known only then

  Totals& operator+=(const Totals& more);
};

/// How things are now.
struct Present {
  std::uint64_t holders = 0, waiters = 0;
  int clients = 0;
  double target_sections_per_second = 0;  ///< 0: closed loop, or no run
  double ttl_seconds = 0;                 ///< of the latest run
  double jain = 0;                        ///< of the latest run; 0 before its first section
  std::array<bool, loadgen::kFaults.size()> faults{};  ///< by FaultKind: whether it strikes
};

/// All that is known of one strategy.
struct Account {
  const Descriptor* strategy = nullptr;
  Totals totals;
  Present present;
};

/// Keeps account of every run for whoever asks while they are under way. Thread-safe; nobody who
/// asks ever holds up a client, as clients know nothing of it.
class RunBook : public loadgen::RunWatcher {
 public:
  /// `nodes`: of which locks on a quorum will ask.
  explicit RunBook(const std::vector<const Descriptor*>& strategies, int nodes = 0);

  /// Of every strategy, in the order given.
  std::vector<Account> accounts() const;

  void run_begins(const loadgen::RunShared& run) override;
  void run_ends(const loadgen::RunShared& run, const results::Run* result) override;

  /// A strategy that did not even reach its store, after so long.
  void not_connected(const Descriptor& strategy, Duration after);

  void fault_changes(const loadgen::RunShared& run, loadgen::FaultKind fault, bool active) override;

 private:
  struct Entry {
    Account account;  ///< of the runs that are over
    const loadgen::RunShared* live = nullptr;
  };

  Entry* find(std::string_view strategy);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace lockbench::exporter
