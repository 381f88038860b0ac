#include "exporter/collect.h"

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "results/tables/observed.h"

namespace lockbench::exporter {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using results::FamilyRow;
using results::Observed;
using watch::FamilyPicture;
using watch::SourcePicture;

using Labels = std::vector<ClientMetric::Label>;

constexpr auto kCounter = MetricType::Counter, kGauge = MetricType::Gauge,
               kHistogram = MetricType::Histogram;

/// The reference is valid until the next call.
MetricFamily& add_family(std::vector<MetricFamily>& families, const char* name, const char* help,
                         MetricType type) {
  return families.emplace_back(MetricFamily{name, help, type, {}});
}

void add_number(MetricFamily& family, Labels labels, double value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  if (family.type == kCounter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void add_histogram(MetricFamily& family, Labels labels, const LatencyBuckets& buckets) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  ClientMetric::Histogram& into = metric.histogram;
  into.sample_count = buckets.count();
  into.sample_sum = buckets.sum_seconds();
  const auto cumulative = buckets.cumulative();
  into.bucket.reserve(cumulative.size() + 1);
  for (std::size_t n = 0; n < cumulative.size(); ++n) {
    into.bucket.push_back({cumulative[n], static_cast<double>(LatencyBuckets::bound(n)) / 1e9});
  }
}

/// lockbench_build_info
MetricFamily build_info(const results::Build& build) {
  MetricFamily family{
      "lockbench_build_info", "Facts about this lockbench, as labels; always 1.", kGauge, {}};
  add_number(
      family,
      {{"version", build.version}, {"commit", build.commit}, {"build_type", build.build_type}}, 1);
  return family;
}

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

  void number(auto value, const Labels& more = {}) {
    add_number(family_, labels(more), static_cast<double>(value));
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

/// A family other than a timing or a count, and how one strategy fills it.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  void (*fill)(const StrategyMetrics& metrics, Series& series);
};

template <auto Member>
void total(const StrategyMetrics& metrics, Series& series) {
  series.number(metrics.totals.*Member);
}
template <auto Member>
void present(const StrategyMetrics& metrics, Series& series) {
  series.number(metrics.present.*Member);
}

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
     total<&Totals::lost_updates>},
    {"lockbench_overlaps_total", kCounter,
     "Entries into a section while another client was inside.", total<&Totals::overlaps>},
    {"lockbench_fence_regressions_total", kCounter,
     "Grants whose fencing number was not above all earlier ones.",
     total<&Totals::fence_regressions>},
    {"lockbench_fence_resets_total", kCounter,
     "Grants whose fencing number was below the previous grant's: the store lost its numbers.",
     total<&Totals::fence_resets>},
    {"lockbench_connect_failing", kGauge,
     "1 if the latest attempt to open a new connection to the store failed, while open ones still "
     "worked; of a probe only.",
     present<&Present::connect_failing>},
    {"lockbench_paused_seconds_total", kCounter,
     "Time in which a probe's process stood still; what happened meanwhile is not counted.",
     total<&Totals::paused_seconds>},
    {"lockbench_stuck_locks", kGauge,
     "Locks that an acquisition found taken until it gave up, though no client of the run held "
     "them; until the next grant.",
     present<&Present::stuck>},
    {"lockbench_holders", kGauge, "Clients inside their section.", present<&Present::holders>},
    {"lockbench_waiters", kGauge, "Clients waiting for the lock.", present<&Present::waiters>},
    {"lockbench_clients", kGauge, "Clients of the current run.", present<&Present::clients>},
    {"lockbench_target_sections_per_second", kGauge,
     "Target rate of the current run; 0 in closed loop.",
     present<&Present::target_sections_per_second>},
    {"lockbench_ttl_seconds", kGauge, "Time to live that the latest run asks for.",
     present<&Present::ttl_seconds>},
    {"lockbench_fairness_jain", kGauge,
     "Jain's index over the clients' sections of the latest run; 0: there were none.",
     present<&Present::jain>},
    {"lockbench_fault_active", kGauge, "1 while the fault is in force.",
     [](const StrategyMetrics& m, Series& series) {
       for (std::size_t i = 0; i < loadgen::kFaults.size(); ++i) {
         series.number(m.present.faults[i] ? 1.0 : 0.0,
                       {{"fault", std::string(loadgen::kFaults[i])}});
       }
     }},
});

/// `row` is one of kTimings or kCounts. Adds each strategy's series to the row's family, which
/// already exists if the previous row has the same one.
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

/// Prometheus' value for "none".
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Store and server, and the deployment if it has a name.
Labels labels_of(const std::string& store, const std::string& endpoint, const Facts& facts) {
  Labels labels{{"store", store}, {"endpoint", endpoint}};
  const auto name = facts.deployments.find(store);
  if (name != facts.deployments.end()) labels.push_back({"deployment", name->second});
  return labels;
}

/// Adds the series of one row and family.
void add_figure(MetricFamily& metric, const FamilyRow& row, const FamilyPicture& family,
                const Facts& facts) {
  Labels labels = labels_of(family.store, family.endpoint, facts);
  labels.push_back({"family", family.family});
  const auto add = [&](const loadgen::HistogramSnapshot& samples) {
    LatencyBuckets buckets;
    buckets.add(samples);
    add_histogram(metric, labels, buckets);
  };
  const bool unknown = family.blind && metric.type == kGauge;
  const auto visit = [&](auto member) {
    const auto& figure = family.*member;
    using Figure = std::remove_cvref_t<decltype(figure)>;
    if (unknown) return add_number(metric, labels, kNone);
    if constexpr (std::is_same_v<Figure, results::Distribution>) {
      add(family.holds);
    } else if constexpr (std::is_same_v<Figure, std::optional<results::Distribution>>) {
      add(family.waits);
    } else if constexpr (requires { figure.has_value(); }) {
      add_number(metric, labels, figure ? static_cast<double>(*figure) : kNone);
    } else {
      add_number(metric, labels, static_cast<double>(figure));
    }
  };
  std::visit(visit, row.member);
}

MetricType type_of(const FamilyRow& row) {
  const bool histogram =
      std::holds_alternative<results::Distribution Observed::*>(row.member) ||
      std::holds_alternative<std::optional<results::Distribution> Observed::*>(row.member);
  if (histogram) return kHistogram;
  return std::string_view(row.metric).ends_with("_total") ? kCounter : kGauge;
}

/// A number of a source, with its name and help.
struct SourceNumber {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const SourcePicture& source);
};

constexpr auto kSourceNumbers = std::to_array<SourceNumber>({
    {"lockbench_watch_sees", kGauge, "1 while the watch sees this server's locks; 0: it is blind.",
     [](const SourcePicture& source) { return source.sees ? 1.0 : 0.0; }},
    {"lockbench_watch_blind_seconds_total", kCounter, "Time during which the watch saw nothing.",
     [](const SourcePicture& source) { return source.blind_seconds; }},
    {"lockbench_watch_missed_total", kCounter,
     "Changes that were not read, for lack of budget or memory.",
     [](const SourcePicture& source) { return static_cast<double>(source.missed); }},
    {"lockbench_watch_commands_total", kCounter, "Commands that the watch sent to this server.",
     [](const SourcePicture& source) { return static_cast<double>(source.commands); }},
});

void add_sources(std::vector<MetricFamily>& all, const std::vector<SourcePicture>& sources,
                 const Facts& facts) {
  const auto labels_of_source = [&](const SourcePicture& source) {
    return labels_of(source.facts.store, source.facts.endpoint, facts);
  };
  for (const SourceNumber& row : kSourceNumbers) {
    MetricFamily& metric = add_family(all, row.name, row.help, row.type);
    for (const SourcePicture& source : sources) {
      add_number(metric, labels_of_source(source), row.value(source));
    }
  }
  MetricFamily& blind = add_family(
      all, "lockbench_watch_blind_for_seconds",
      "Length of the present outage, and its reason as a label; only while blind.", kGauge);
  for (const SourcePicture& source : sources) {
    if (source.sees) continue;
    Labels labels = labels_of_source(source);
    labels.push_back({"reason", loadgen::info_of(loadgen::reason_of(source.blind_reason)).name});
    add_number(blind, std::move(labels), source.blind_for);
  }
  MetricFamily& info = add_family(all, "lockbench_watch_source_info",
                                  "How a server is watched, as labels; always 1.", kGauge);
  for (const SourcePicture& source : sources) {
    Labels labels = labels_of_source(source);
    labels.push_back({"way", source.facts.way});
    labels.push_back({"accuracy", std::string(watch::name_of(source.facts.accuracy))});
    add_number(info, std::move(labels), 1);
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
    Labels labels;
    for (const auto& [name, value] : facts.run) labels.push_back({name, value});
    const bool promises = one.strategy->traits.promises_exclusion;
    labels.push_back({"promises_exclusion", promises ? "true" : "false"});
    Series(run, one, facts).number(1.0, labels);
  }
  families.push_back(build_info(facts.build));
  return families;
}

std::vector<MetricFamily> collect(const WatchMetrics& metrics, const Facts& facts) {
  const std::shared_ptr<const watch::Picture> picture = metrics.read();
  std::vector<MetricFamily> all;
  for (const FamilyRow& row : results::kFamilyRows) {
    if (row.metric == nullptr) continue;
    MetricFamily& metric = add_family(all, row.metric, row.help, type_of(row));
    for (const FamilyPicture& family : picture->families) add_figure(metric, row, family, facts);
  }
  MetricFamily& stopped = add_family(
      all, "lockbench_watch_renewals_stopped_total",
      "Held locks whose holder renewed them in time before, and at a look no longer did.",
      kCounter);
  for (const FamilyPicture& family : picture->families) {
    Labels labels = labels_of(family.store, family.endpoint, facts);
    labels.push_back({"family", family.family});
    add_number(stopped, std::move(labels), static_cast<double>(family.renewals_stopped));
  }
  add_sources(all, picture->sources, facts);
  add_number(add_family(all, "lockbench_watch_unfollowed_locks",
                        "Locks that were seen but are not followed, for lack of memory.", kGauge),
             {}, static_cast<double>(picture->locks_unfollowed));
  all.push_back(build_info(facts.build));
  return all;
}

}  // namespace lockbench::exporter
