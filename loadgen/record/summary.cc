#include "loadgen/record/summary.h"

#include <algorithm>
#include <limits>

#include "results/stats/statistics.h"
#include "strategies/store.h"

namespace lockbench::loadgen {
namespace {

double per(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
}

void summarise_outcomes(const Recorder& recorder, results::Run& result) {
  const auto count = [&](AcquireOutcome outcome) {
    return recorder.outcome_count(Phase::measured, outcome);
  };
  result.outcomes = {.acquired = count(AcquireOutcome::acquired),
                     .timed_out = count(AcquireOutcome::timed_out),
                     .refused = count(AcquireOutcome::refused),
                     .failed = count(AcquireOutcome::failed),
                     .unknown = count(AcquireOutcome::unknown),
                     .abandoned = count(AcquireOutcome::abandoned)};
}

void summarise_distributions(const Recorder::Histograms& histograms, results::Run& result) {
  const auto distribution = [](const ShardedHistogram& histogram) {
    return to_distribution(histogram.snapshot());
  };
  result.acquire = distribution(histograms.acquire_with(AcquireOutcome::acquired));
  result.acquire_service = distribution(histograms.acquire_service);
  result.hold = distribution(histograms.hold);
  result.release = distribution(histograms.release);
  result.handoff = distribution(histograms.handoff);
  result.schedule_lag = distribution(histograms.schedule_lag);
  result.loss_to_knowledge = distribution(histograms.loss_to_knowledge);
}

void summarise_counts(const Counts& counts, const ServiceCounts& services, results::Run& result) {
  const std::uint64_t sections = counts[Count::sections];
  const auto mean_seconds = [&](Count part) { return per(counts[part], sections) * 1e-9; };
  result.sections = sections;
  result.shared_sections = counts[Count::shared_sections];
  result.leases_lost = counts[Count::leases_lost];
  result.releases_not_owner = counts[Count::releases_not_owner];
  result.releases_failed = counts[Count::releases_failed];
  result.wait = {.round_trip_seconds = mean_seconds(Count::round_trip_ns),
                 .backoff_seconds = mean_seconds(Count::backoff_ns),
                 .notified_seconds = mean_seconds(Count::notified_ns)};
  result.attempts_per_grant = per(counts[Count::granted_attempts], sections);
  result.commands_per_section = per(counts[Count::commands] + services.commands, sections);
  if (counts[Count::wakes] > 0) result.herd_factor = per(counts[Count::wakes], sections);
}

/// Nothing where nothing was renewed.
std::optional<results::Renewal> renewal_of(const ServiceCounts& services,
                                           const Recorder::Histograms& histograms,
                                           double measured_seconds) {
  const std::uint64_t sent =
      services.renewals + services.renewals_failed + services.renewals_refused;
  if (sent == 0 || measured_seconds <= 0) return std::nullopt;
  const auto commands = static_cast<double>(services.renewal_commands);
  return results::Renewal{.renewals = services.renewals,
                          .failures = services.renewals_failed,
                          .lost = services.renewals_refused,
                          .commands_per_second = commands / measured_seconds,
                          .duration = to_distribution(histograms.renewal_duration.snapshot()),
                          .slip = to_distribution(histograms.renewal_slip.snapshot()),
                          .margin = to_distribution(histograms.renewal_margin.snapshot())};
}

/// Of the strategy's servers, as shown to people.
std::vector<std::string> names_of_nodes(const RunShared& run) {
  const StoreKind* const kind = find_store_kind(run.strategy.backend);
  std::vector<std::string> names;
  for (const std::string& url : urls_of(run.strategy, run.endpoints)) {
    names.push_back(kind == nullptr ? "?" : kind->display(url).value_or("?"));
  }
  return names;
}

/// Nothing for a lock without one.
std::optional<results::Quorum> quorum_of(const RunShared& run) {
  const Recorder::Histograms& histograms = run.recorder.histograms(Phase::measured);
  if (histograms.nodes.empty()) return std::nullopt;
  const QuorumCounts counts = run.recorder.quorum_counts(Phase::measured);
  results::Quorum quorum{.nodes = histograms.nodes.size(),
                         .split_votes = counts.split_votes,
                         .validity = to_distribution(histograms.validity.snapshot())};
  quorum.rounds_per_grant = quorum.validity.count == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                       : per(counts.rounds, quorum.validity.count);
  const std::vector<std::string> names = names_of_nodes(run);
  for (std::size_t i = 0; i < histograms.nodes.size(); ++i) {
    const auto& node = histograms.nodes[i];
    quorum.votes.push_back({.node = names.at(i),
                            .granted = node.count(Vote::granted),
                            .refused = node.count(Vote::refused),
                            .failed = node.count(Vote::failed)});
    HistogramSnapshot answers = node.taken_by(Vote::granted).snapshot();
    answers.merge(node.taken_by(Vote::refused).snapshot());
    quorum.node_seconds.push_back(to_distribution(answers));
  }
  return quorum;
}

/// Nothing where no replica was waited for.
std::optional<results::Replication> replication_of(const Recorder& recorder) {
  const auto wait = to_distribution(recorder.histograms(Phase::measured).replica_wait.snapshot());
  if (wait.count == 0) return std::nullopt;
  const ReplicationCounts counts = recorder.replication_counts(Phase::measured);
  return results::Replication{.replicas = counts.wanted, .refusals = counts.refusals, .wait = wait};
}

results::Fairness fairness_of(const RunShared& run) {
  results::Fairness fairness;
  for (int client = 0; client < run.recorder.client_count(); ++client) {
    fairness.per_client.push_back(
        run.recorder.client_counts(client, Phase::measured)[Count::sections]);
  }
  fairness.jain = results::jain_index(fairness.per_client);
  fairness.longest_streak = run.audit.totals().longest_streak;
  fairness.longest_wait_seconds = seconds(run.recorder.totals(Phase::measured).longest_wait);
  return fairness;
}

void summarise_audit(const RunShared& run, results::Run& result) {
  results::Audit& audit = result.audit;
  const AuditTotals totals = run.audit.totals();
  audit.overlaps = totals.overlaps;
  audit.overlap_seconds = seconds(totals.overlap_time);
  audit.fence_regressions = totals.fence_regressions;
  for (const Phase phase : kPhases) {
    audit.resource_failures += run.recorder.totals(phase)[Count::resource_failures];
  }
  if (const auto counter = run.counter->totals()) {
    audit.increments = counter->accepted;
    audit.counter = counter->moved;
    audit.lost_updates = counter->lost;
    audit.lost_updates_max = counter->lost_max;
    audit.stale_writes_rejected = counter->rejected_stale;
  } else {
    result.errors.push_back("the counter could not be read: " + counter.error());
  }
  // Without a write that was accepted nothing was audited, and silence would look like success.
  if (audit.increments == 0) audit.verdict = results::Verdict::unaudited;
  if (audit.lost_updates > 0 || audit.overlaps > 0 || audit.fence_regressions > 0) {
    audit.verdict = run.strategy.traits.promises_exclusion ? results::Verdict::violated
                                                           : results::Verdict::unprotected;
  }
}

}  // namespace

void summarise(const RunShared& run, Duration measured, results::Run& result) {
  const Counts counts = run.recorder.totals(Phase::measured);
  result.errors = run.recorder.failures();
  summarise_outcomes(run.recorder, result);
  summarise_distributions(run.recorder.histograms(Phase::measured), result);
  const ServiceCounts services = run.recorder.service_counts(Phase::measured);
  summarise_counts(counts, services, result);
  result.renewal =
      renewal_of(services, run.recorder.histograms(Phase::measured), seconds(measured));
  result.quorum = quorum_of(run);
  result.replication = replication_of(run.recorder);
  result.duration_seconds = seconds(measured);
  if (measured > Duration::zero()) {
    result.sections_per_second = static_cast<double>(result.sections) / seconds(measured);
  }
  result.fairness = fairness_of(run);
  summarise_audit(run, result);
}

results::SeriesPoint SeriesSampler::sample(TimePoint now) {
  HistogramSnapshot acquired;
  std::uint64_t sections = 0, failed = 0;
  for (const Phase phase : kPhases) {
    acquired.merge(
        run_.recorder.histograms(phase).acquire_with(AcquireOutcome::acquired).snapshot());
    sections += run_.recorder.totals(phase)[Count::sections];
    failed += run_.recorder.outcome_count(phase, AcquireOutcome::failed) +
              run_.recorder.outcome_count(phase, AcquireOutcome::unknown);
  }
  const HistogramSnapshot lately = acquired.minus(acquired_);
  const results::SeriesPoint point{.t = seconds(now - run_.load_start),
                                   .warmup = begun_.value_or(run_.load_start) < run_.measure_start,
                                   .sections = sections - sections_,
                                   .acquire_p50 = seconds(lately.percentile(0.5)),
                                   .acquire_p99 = seconds(lately.percentile(0.99)),
                                   .failed = failed - failed_,
                                   .waiters = run_.recorder.clients_in(ClientState::waiting),
                                   .holders = run_.recorder.clients_in(ClientState::holding)};
  begun_ = now;
  acquired_ = std::move(acquired);
  sections_ = sections;
  failed_ = failed;
  return point;
}

void SeriesSampler::complete(results::SeriesPoint& last) {
  const results::SeriesPoint late = sample(begun_.value_or(run_.load_start));
  last.sections += late.sections;
  last.failed += late.failed;
}

}  // namespace lockbench::loadgen
