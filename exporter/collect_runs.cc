#include <array>

#include "exporter/collect.h"

namespace lockbench::exporter {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

/// By Vote.
constexpr std::array<const char*, loadgen::kVotes.size()> kVoteNames = {"granted", "refused",
                                                                        "failed"};

/// Puts one strategy's series into a family.
class Series {
 public:
  Series(MetricFamily& family, const StrategyMetrics& metrics, const Facts& facts)
      : family_(family),
        labels_({{"strategy", std::string(metrics.strategy->name)},
                 {"backend", std::string(metrics.strategy->backend)}}) {
    const auto name = facts.deployments.find(metrics.strategy->backend);
    if (name != facts.deployments.end()) last_.push_back({"deployment", name->second});
    if (!facts.rank.empty()) last_.push_back({"rank", facts.rank});
  }

  void number(double value, const Labels& more = {}) { add_number(family_, labels(more), value); }
  void number(std::uint64_t value, const Labels& more = {}) {
    number(static_cast<double>(value), more);
  }

  void histogram(const LatencyBuckets& buckets, const Labels& more = {}) {
    add_histogram(family_, labels(more), buckets);
  }

 private:
  Labels labels(const Labels& more) const {
    Labels all = labels_;
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), last_.begin(), last_.end());
    return all;
  }

  MetricFamily& family_;
  Labels labels_, last_;  ///< of every series: before and after its own
};

template <class Visit>
void for_each_vote(const StrategyMetrics& metrics, const Visit& visit) {
  for (std::size_t node = 0; node < metrics.totals.nodes.size(); ++node) {
    for (std::size_t vote = 0; vote < loadgen::kVotes.size(); ++vote) {
      visit(metrics.totals.nodes[node], vote,
            Labels{{"node", std::to_string(node)}, {"outcome", kVoteNames[vote]}});
    }
  }
}

/// A family that is not simply a timing or a count, and what one strategy puts into it.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  void (*fill)(const StrategyMetrics& metrics, Series& series);
};

constexpr auto kOthers = std::to_array<Metric>({
    {"lockbench_sections_total", kCounter,
     "Sections by the outcome of their acquisition; acquired ones count when they are over, others "
     "once for each of several locks.",
     [](const StrategyMetrics& m, Series& series) {
       for (const loadgen::TimingInfo& row : loadgen::kTimings) {
         if (row.kind > loadgen::Timing::abandoned) break;
         const bool acquired = row.kind == loadgen::Timing::acquired;
         series.number(acquired ? m.totals.counts[loadgen::Count::sections]
                                : m.totals.timings[row.kind].count(),
                       {{"outcome", row.exported.label_value}});
       }
     }},
    {"lockbench_quorum_node_duration_seconds", kHistogram,
     "Time until a node of a quorum answered, by its vote; late votes are not included.",
     [](const StrategyMetrics& m, Series& series) {
       for_each_vote(m, [&](const NodeTotals& node, std::size_t vote, const Labels& labels) {
         series.histogram(node.taken[vote], labels);
       });
     }},
    {"lockbench_quorum_votes_total", kCounter, "Votes of a quorum's nodes, including late ones.",
     [](const StrategyMetrics& m, Series& series) {
       for_each_vote(m, [&](const NodeTotals& node, std::size_t vote, const Labels& labels) {
         series.number(node.votes[vote], labels);
       });
     }},
    {"lockbench_lost_updates_total", kCounter,
     "Updates of the protected counter that were lost; known at each run's end.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.totals.lost_updates); }},
    {"lockbench_overlaps_total", kCounter,
     "Entries into a section while another client was inside.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.totals.overlaps); }},
    {"lockbench_fence_regressions_total", kCounter,
     "Grants whose fencing number was not above all earlier ones.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.totals.fence_regressions); }},
    {"lockbench_fence_resets_total", kCounter,
     "Grants whose fencing number was below that of the grant before: the store lost its numbers.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.totals.fence_resets); }},
    {"lockbench_stuck_locks", kGauge,
     "Locks that an acquisition found taken until it gave up, though no client of the run held "
     "them; until the next grant.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.stuck); }},
    {"lockbench_holders", kGauge, "Clients inside their section.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.holders); }},
    {"lockbench_waiters", kGauge, "Clients waiting for the lock.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.waiters); }},
    {"lockbench_clients", kGauge, "Clients of the current run.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.clients); }},
    {"lockbench_target_sections_per_second", kGauge,
     "Target rate of the current run; 0 in closed loop.",
     [](const StrategyMetrics& m, Series& series) {
       series.number(m.present.target_sections_per_second);
     }},
    {"lockbench_ttl_seconds", kGauge, "Time to live that the latest run asks for.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.ttl_seconds); }},
    {"lockbench_fairness_jain", kGauge,
     "Jain's index over the clients' sections of the last 30 to 60 s of the latest run; 0: there "
     "were none.",
     [](const StrategyMetrics& m, Series& series) { series.number(m.present.jain); }},
    {"lockbench_fault_active", kGauge, "1 while the fault is in force.",
     [](const StrategyMetrics& m, Series& series) {
       for (std::size_t i = 0; i < loadgen::kFaults.size(); ++i) {
         series.number(m.present.faults[i] ? 1.0 : 0.0,
                       {{"fault", std::string(loadgen::kFaults[i])}});
       }
     }},
});

/// `row` is one of kTimings or kCounts. Adds each strategy's series to the row's family, which is
/// the last one if the row before has the same.
template <class Row, class Fill>
void add_row(const Row& row, MetricType type, const std::vector<StrategyMetrics>& strategies,
             const Facts& facts, std::vector<MetricFamily>& families, const Fill& fill) {
  const loadgen::ExportedAs& exported = row.exported;
  if (exported.name == nullptr) return;
  const bool same = !families.empty() && families.back().name == exported.name;
  MetricFamily& family =
      same ? families.back() : add_family(families, exported.name, exported.help, type);
  Labels labels;
  if (exported.label != nullptr) labels.push_back({exported.label, exported.label_value});
  if (exported.outcome != nullptr) labels.push_back({"outcome", exported.outcome});
  for (const StrategyMetrics& metrics : strategies) {
    Series series(family, metrics, facts);
    fill(series, metrics.totals, labels);
  }
}

}  // namespace

std::vector<MetricFamily> collect(const RunMetrics& metrics, const Facts& facts) {
  const std::vector<StrategyMetrics> strategies = metrics.read();
  std::vector<MetricFamily> families;
  for (const loadgen::TimingInfo& row : loadgen::kTimings) {
    add_row(row, kHistogram, strategies, facts, families,
            [&](Series& series, const Totals& totals, const Labels& labels) {
              series.histogram(totals.timings[row.kind], labels);
            });
  }
  for (const loadgen::CountInfo& row : loadgen::kCounts) {
    add_row(row, kCounter, strategies, facts, families,
            [&](Series& series, const Totals& totals, const Labels& labels) {
              series.number(static_cast<double>(totals.counts[row.kind]) * row.unit, labels);
            });
  }
  for (const Metric& metric : kOthers) {
    MetricFamily& family = add_family(families, metric.name, metric.help, metric.type);
    for (const StrategyMetrics& one : strategies) {
      Series series(family, one, facts);
      metric.fill(one, series);
    }
  }
  MetricFamily& run = add_family(families, "lockbench_run_info",
                                 "Facts about the runs, as labels; always 1.", kGauge);
  for (const StrategyMetrics& one : strategies) {
    Labels labels = to_labels(facts.run);
    const bool promises = one.strategy->traits.promises_exclusion;
    labels.push_back({"promises_exclusion", promises ? "true" : "false"});
    Series(run, one, facts).number(1.0, labels);
  }
  families.push_back(build_info(facts.build));
  return families;
}

}  // namespace lockbench::exporter
