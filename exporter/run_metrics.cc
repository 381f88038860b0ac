#include "exporter/run_metrics.h"

#include <algorithm>
#include <numeric>

#include "loadgen/run/worker.h"
#include "results/stats/statistics.h"

namespace lockbench::exporter {
namespace {

void add_histograms(const loadgen::Recorder::Histograms& from, Totals& to) {
  for (const loadgen::TimingInfo& info : loadgen::kTimings) {
    if (info.exported.name != nullptr) to.timings[info.kind].add(from[info.kind].snapshot());
  }
  to.nodes.resize(std::max(to.nodes.size(), from.nodes.size()));
  for (std::size_t node = 0; node < from.nodes.size(); ++node) {
    for (std::size_t vote = 0; vote < loadgen::kVotes.size(); ++vote) {
      to.nodes[node].votes[vote] += from.nodes[node].count(loadgen::kVotes[vote]);
      to.nodes[node].taken[vote].add(from.nodes[node].taken[vote].snapshot());
    }
  }
}

/// Adds a run, which may be under way.
void add_run(const loadgen::RunShared& run, Totals& totals) {
  add_histograms(run.recorder.histograms(loadgen::Phase::measured), totals);
  const loadgen::Counts whole = run.recorder.totals();
  const loadgen::Counts measured = run.recorder.totals(loadgen::Phase::measured);
  for (const loadgen::CountInfo& info : loadgen::kCounts) {
    totals.counts[info.kind] += (info.whole_run ? whole : measured)[info.kind];
  }
  const loadgen::AuditTotals audit = run.audit.totals();
  totals.overlaps += audit.overlaps;
  totals.fence_regressions += audit.fence_regressions;
  totals.fence_resets += audit.fence_resets;
}

/// Jain's index over the sections of this process's clients that share the load: all but rivals. 0
/// if there are none.
double jain_of(const loadgen::RunShared& run) {
  std::vector<std::uint64_t> sections;
  for (int i = 0; i < std::min(run.share.count(), run.workload.scheduled_clients()); ++i) {
    const auto& client = run.recorder.client(run.share.number(i));
    sections.push_back(client.total(loadgen::Count::sections, loadgen::Phase::measured));
  }
  const bool none = std::ranges::all_of(sections, [](std::uint64_t own) { return own == 0; });
  return none ? 0 : results::jain_index(sections);
}

}  // namespace

void LatencyBuckets::add(const loadgen::HistogramSnapshot& fine) {
  std::size_t coarse = 0;
  for (std::size_t i = 0; i < fine.buckets.size(); ++i) {
    const std::int64_t middle = loadgen::HistogramLayout::midpoint(i);
    while (coarse < kBounds && middle > bound(coarse)) ++coarse;
    counts_[coarse] += fine.buckets[i];
  }
  counts_[kBounds] += fine.overflow;
  sum_ += fine.sum;
}

std::uint64_t LatencyBuckets::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::array<std::uint64_t, LatencyBuckets::kBounds> LatencyBuckets::cumulative() const {
  std::array<std::uint64_t, kBounds> sums{};
  std::partial_sum(counts_.begin(), counts_.begin() + kBounds, sums.begin());
  return sums;
}

RunMetrics::RunMetrics(const std::vector<const Descriptor*>& strategies, int nodes) {
  for (const Descriptor* strategy : strategies) {
    StrategyMetrics& metrics = entries_.emplace_back().finished;
    metrics.strategy = strategy;
    if (strategy->traits.nodes > 1) metrics.totals.nodes.resize(static_cast<std::size_t>(nodes));
  }
}

std::vector<StrategyMetrics> RunMetrics::read() const {
  const std::scoped_lock lock(mutex_);
  std::vector<StrategyMetrics> all;
  all.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    StrategyMetrics& metrics = all.emplace_back(entry.finished);
    if (entry.live == nullptr) continue;
    const loadgen::RunShared& run = *entry.live;
    if (entry.at_beat) {
      metrics.totals = *entry.at_beat;
    } else {
      add_run(run, metrics.totals);
    }
    metrics.present.holders = run.recorder.clients_in(loadgen::ClientState::holding);
    metrics.present.waiters = run.recorder.clients_in(loadgen::ClientState::waiting);
    metrics.present.clients = static_cast<std::uint64_t>(run.share.count());
    metrics.present.target_sections_per_second =
        run.workload.rate.value_or(0) * run.share.count() / run.share.clients;
    metrics.present.jain = jain_of(run);
    metrics.present.stuck = run.handoff.stuck();
  }
  return all;
}

template <class Change>
void RunMetrics::change(std::string_view strategy, const Change& change) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(
      entries_, strategy, [](const Entry& entry) { return entry.finished.strategy->name; });
  if (found != entries_.end()) change(*found);
}

void RunMetrics::run_begins(const loadgen::RunShared& run) {
  change(run.strategy.name, [&](Entry& entry) {
    entry.live = &run;
    entry.at_beat.reset();
    entry.cut = false;
    entry.finished.present.ttl_seconds = seconds(run.workload.ttl);
  });
}

void RunMetrics::run_ends(const loadgen::RunShared& run, const results::Run* result) {
  change(run.strategy.name, [&](Entry& entry) {
    if (entry.live != &run) return;
    entry.finished.present.jain = jain_of(run);
    entry.live = nullptr;
    if (entry.cut) {
      entry.finished.totals = *entry.at_beat;
      return;
    }
    add_run(run, entry.finished.totals);
    if (result != nullptr) entry.finished.totals.lost_updates += result->audit.lost_updates;
  });
}

void RunMetrics::not_connected(const Descriptor& strategy, loadgen::FailureReason reason,
                               Duration after, std::uint64_t sections) {
  loadgen::HistogramSnapshot failed;
  for (std::uint64_t i = 0; i < sections; ++i) failed.record(after);
  change(strategy.name, [&](Entry& entry) {
    entry.finished.totals.timings[loadgen::Timing::failed].add(failed);
    entry.finished.totals.counts[count_of(reason)] += sections;
  });
}

void RunMetrics::beat(const Descriptor& strategy) {
  change(strategy.name, [&](Entry& entry) {
    if (entry.live == nullptr || entry.cut) return;
    entry.at_beat = entry.finished.totals;
    add_run(*entry.live, *entry.at_beat);
  });
}

void RunMetrics::stood_still(const Descriptor& strategy, Duration time) {
  change(strategy.name, [&](Entry& entry) {
    entry.finished.totals.paused_seconds += seconds(time);
    entry.cut = entry.live != nullptr && entry.at_beat.has_value();
    if (entry.cut) entry.at_beat->paused_seconds = entry.finished.totals.paused_seconds;
  });
}

void RunMetrics::set_connect_failing(const Descriptor& strategy, std::optional<std::string> why) {
  change(strategy.name, [&](Entry& entry) {
    entry.finished.present.connect_failing = why.has_value();
    entry.connect_failing = std::move(why);
  });
}

void RunMetrics::set_failing(const Descriptor& strategy, std::optional<std::string> why) {
  change(strategy.name, [&](Entry& entry) { entry.failing = std::move(why); });
}

std::vector<std::string> RunMetrics::failing() const {
  std::vector<std::string> lines;
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    const std::string name(entry.finished.strategy->name);
    if (entry.failing) lines.push_back(name + ": " + *entry.failing);
    if (entry.connect_failing)
      lines.push_back(name + ": new connections: " + *entry.connect_failing);
  }
  return lines;
}

void RunMetrics::fault_changes(const loadgen::RunShared& run, loadgen::FaultKind fault,
                               bool active) {
  change(run.strategy.name, [&](Entry& entry) {
    entry.finished.present.faults.at(static_cast<std::size_t>(fault)) = active;
  });
}

}  // namespace lockbench::exporter
