#include "exporter/collector.h"

#include <prometheus/client_metric.h>

#include <array>

namespace lockbench::exporter {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::array<const char*, loadgen::kOutcomes.size()> kOutcomeNames = {
    "acquired", "timed_out", "refused", "failed", "unknown", "abandoned"};

/// By Vote.
constexpr std::array<const char*, loadgen::kVotes.size()> kVoteNames = {"granted", "refused",
                                                                        "failed"};

constexpr double kNanosecond = 1e-9;

/// Puts one strategy's series into a family.
class Series {
 public:
  Series(MetricFamily& family, const Account& account)
      : family_(family),
        labels_({{"strategy", std::string(account.strategy->name)},
                 {"backend", std::string(account.strategy->backend)}}) {}

  void number(double value, const Labels& more = {}) {
    ClientMetric& metric = add(more);
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  void number(std::uint64_t value, const Labels& more = {}) {
    number(static_cast<double>(value), more);
  }

  void histogram(const LatencyBuckets& buckets, const Labels& more = {}) {
    ClientMetric::Histogram& into = add(more).histogram;
    into.sample_count = buckets.count();
    into.sample_sum = buckets.sum_seconds();
    const auto cumulative = buckets.cumulative();
    into.bucket.reserve(cumulative.size() + 1);
    for (std::size_t n = 0; n < cumulative.size(); ++n) {
      into.bucket.push_back({cumulative[n], static_cast<double>(LatencyBuckets::bound(n)) / 1e9});
    }
  }

 private:
  ClientMetric& add(const Labels& more) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = labels_;
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    return metric;
  }

  MetricFamily& family_;
  Labels labels_;
};

template <class Visit>
void for_each_vote(const Account& account, const Visit& visit) {
  for (std::size_t node = 0; node < account.totals.nodes.size(); ++node) {
    for (std::size_t vote = 0; vote < loadgen::kVotes.size(); ++vote) {
      visit(account.totals.nodes[node], vote,
            Labels{{"node", std::to_string(node)}, {"outcome", kVoteNames[vote]}});
    }
  }
}

/// A family and what one strategy puts into it.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  void (*fill)(const Account& account, Series& series);
};

constexpr auto kCounter = MetricType::Counter;
constexpr auto kGauge = MetricType::Gauge;
constexpr auto kHistogram = MetricType::Histogram;

constexpr auto kWaiting = std::to_array<Metric>({
    {"lockbench_acquire_duration_seconds", kHistogram,
     "Time from a section's intended start until its acquisition ended, by outcome.",
     [](const Account& account, Series& series) {
       for (std::size_t i = 0; i < loadgen::kOutcomes.size(); ++i) {
         series.histogram(account.totals.acquire[i], {{"outcome", kOutcomeNames[i]}});
       }
     }},
    {"lockbench_hold_duration_seconds", kHistogram, "Time inside the section.",
     [](const Account& account, Series& series) { series.histogram(account.totals.hold); }},
    {"lockbench_release_duration_seconds", kHistogram, "Time that a release took.",
     [](const Account& account, Series& series) { series.histogram(account.totals.release); }},
    {"lockbench_handoff_duration_seconds", kHistogram,
     "Time from the start of a release to the next grant to a client that was waiting.",
     [](const Account& account, Series& series) { series.histogram(account.totals.handoff); }},
    {"lockbench_schedule_lag_seconds", kHistogram,
     "Open loop: how late sections began, against their intended start.",
     [](const Account& account, Series& series) { series.histogram(account.totals.schedule_lag); }},
    {"lockbench_acquire_attempts_total", kCounter, "Attempts to get the lock.",
     [](const Account& account, Series& series) {
       series.number(account.totals.counts[loadgen::Count::attempts]);
     }},
    {"lockbench_store_commands_total", kCounter,
     "Commands sent to the lock's store, those of renewal and notification included.",
     [](const Account& account, Series& series) {
       series.number(account.totals.counts[loadgen::Count::commands] +
                     account.totals.services.commands);
     }},
    {"lockbench_sections_total", kCounter,
     "Sections by the outcome of their acquisition; those acquired count once they are over.",
     [](const Account& account, Series& series) {
       for (std::size_t i = 0; i < loadgen::kOutcomes.size(); ++i) {
         const bool acquired = loadgen::kOutcomes[i] == AcquireOutcome::acquired;
         series.number(acquired ? account.totals.counts[loadgen::Count::sections]
                                : account.totals.acquire[i].count(),
                       {{"outcome", kOutcomeNames[i]}});
       }
     }},
    {"lockbench_wait_seconds_total", kCounter, "What granted acquisitions spent their time on.",
     [](const Account& account, Series& series) {
       const auto part = [&](const char* name, loadgen::Count what) {
         series.number(static_cast<double>(account.totals.counts[what]) * kNanosecond,
                       {{"part", name}});
       };
       part("round_trip", loadgen::Count::round_trip_ns);
       part("backoff", loadgen::Count::backoff_ns);
       part("notified", loadgen::Count::notified_ns);
     }},
});

constexpr auto kRenewing = std::to_array<Metric>({
    {"lockbench_renewals_total", kCounter,
     "Renewals of held leases: renewed, lost (the store knew the owner no more) or failed.",
     [](const Account& account, Series& series) {
       const loadgen::ServiceCounts& services = account.totals.services;
       series.number(services.renewals, {{"outcome", "renewed"}});
       series.number(services.renewals_refused, {{"outcome", "lost"}});
       series.number(services.renewals_failed, {{"outcome", "failed"}});
     }},
    {"lockbench_renewal_duration_seconds", kHistogram,
     "Time from a renewal's sending to its answer.",
     [](const Account& account, Series& series) {
       series.histogram(account.totals.renewal_duration);
     }},
    {"lockbench_renewal_slip_seconds", kHistogram, "How late renewals were sent, against due.",
     [](const Account& account, Series& series) { series.histogram(account.totals.renewal_slip); }},
    {"lockbench_renewal_margin_seconds", kHistogram,
     "Validity that a lease had left when its renewal landed.",
     [](const Account& account, Series& series) {
       series.histogram(account.totals.renewal_margin);
     }},
    {"lockbench_loss_to_knowledge_seconds", kHistogram,
     "Time from the end of a lost lease's validity until its holder knew.",
     [](const Account& account, Series& series) {
       series.histogram(account.totals.loss_to_knowledge);
     }},
    {"lockbench_quorum_node_duration_seconds", kHistogram,
     "Time until a node of a quorum answered, by its vote; of those that were waited for.",
     [](const Account& account, Series& series) {
       for_each_vote(account, [&](const NodeTotals& node, std::size_t vote, const Labels& labels) {
         series.histogram(node.taken[vote], labels);
       });
     }},
    {"lockbench_quorum_votes_total", kCounter,
     "Votes of a quorum's nodes, those that came late included.",
     [](const Account& account, Series& series) {
       for_each_vote(account, [&](const NodeTotals& node, std::size_t vote, const Labels& labels) {
         series.number(node.votes[vote], labels);
       });
     }},
    {"lockbench_quorum_rounds_total", kCounter, "Rounds in which a quorum was asked.",
     [](const Account& account, Series& series) { series.number(account.totals.quorum.rounds); }},
    {"lockbench_quorum_split_votes_total", kCounter,
     "Rounds that nobody won because several clients had votes.",
     [](const Account& account, Series& series) {
       series.number(account.totals.quorum.split_votes);
     }},
    {"lockbench_quorum_validity_seconds", kHistogram,
     "Validity that was left when a quorum had granted.",
     [](const Account& account, Series& series) {
       series.histogram(account.totals.quorum_validity);
     }},
});

constexpr auto kAudited = std::to_array<Metric>({
    {"lockbench_lost_updates_total", kCounter,
     "Updates of the protected counter that were lost; known at each run's end.",
     [](const Account& account, Series& series) { series.number(account.totals.lost_updates); }},
    {"lockbench_overlaps_total", kCounter, "Entries that met another client inside the section.",
     [](const Account& account, Series& series) { series.number(account.totals.overlaps); }},
    {"lockbench_fence_regressions_total", kCounter,
     "Grants whose fencing number was not above all earlier ones.",
     [](const Account& account, Series& series) {
       series.number(account.totals.fence_regressions);
     }},
    {"lockbench_stale_writes_rejected_total", kCounter,
     "Accesses that the counter refused because of an old fencing number.",
     [](const Account& account, Series& series) { series.number(account.totals.stale_rejected); }},
    {"lockbench_leases_lost_total", kCounter, "Leases that were lost while they were held.",
     [](const Account& account, Series& series) {
       series.number(account.totals.counts[loadgen::Count::leases_lost]);
     }},
    {"lockbench_holders", kGauge, "Clients inside their section.",
     [](const Account& account, Series& series) { series.number(account.present.holders); }},
    {"lockbench_waiters", kGauge, "Clients that wait for the lock.",
     [](const Account& account, Series& series) { series.number(account.present.waiters); }},
    {"lockbench_clients", kGauge, "Clients of the run under way.",
     [](const Account& account, Series& series) {
       series.number(static_cast<double>(account.present.clients));
     }},
    {"lockbench_target_sections_per_second", kGauge,
     "Rate that the run under way aims at; 0 in closed loop.",
     [](const Account& account, Series& series) {
       series.number(account.present.target_sections_per_second);
     }},
    {"lockbench_ttl_seconds", kGauge, "Time to live that the latest run asks for.",
     [](const Account& account, Series& series) { series.number(account.present.ttl_seconds); }},
    {"lockbench_fairness_jain", kGauge,
     "Jain's index over the clients' sections of the latest run; 0 before the first section.",
     [](const Account& account, Series& series) { series.number(account.present.jain); }},
    {"lockbench_fault_active", kGauge, "1 while the fault strikes.",
     [](const Account& account, Series& series) {
       for (std::size_t i = 0; i < loadgen::kFaults.size(); ++i) {
         series.number(account.present.faults[i] ? 1.0 : 0.0,
                       {{"fault", std::string(loadgen::kFaults[i])}});
       }
     }},
});

Labels to_labels(const std::vector<std::pair<std::string, std::string>>& facts) {
  Labels labels;
  for (const auto& [name, value] : facts) labels.push_back({name, value});
  return labels;
}

}  // namespace

std::vector<MetricFamily> Collector::Collect() const {
  const std::vector<Account> accounts = book_->accounts();
  std::vector<MetricFamily> families;
  const auto add = [&](const auto& metrics) {
    for (const Metric& metric : metrics) {
      MetricFamily& family = families.emplace_back(MetricFamily{
          .name = metric.name, .help = metric.help, .type = metric.type, .metric = {}});
      for (const Account& account : accounts) {
        Series series(family, account);
        metric.fill(account, series);
      }
    }
  };
  add(kWaiting);
  add(kRenewing);
  add(kAudited);

  MetricFamily run{
      "lockbench_run_info", "What the runs are made of, as labels; always 1.", kGauge, {}};
  for (const Account& account : accounts) {
    Labels labels = to_labels(facts_.run);
    const bool promises = account.strategy->traits.promises_exclusion;
    labels.push_back({"promises_exclusion", promises ? "true" : "false"});
    Series(run, account).number(1.0, labels);
  }
  families.push_back(std::move(run));
  MetricFamily build{"lockbench_build_info", "Of this lockbench, as labels; always 1.", kGauge, {}};
  build.metric.emplace_back().label = to_labels(facts_.build);
  build.metric.back().gauge.value = 1;
  families.push_back(std::move(build));
  return families;
}

}  // namespace lockbench::exporter
