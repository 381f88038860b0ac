#include <algorithm>
#include <limits>

#include "loadgen/run/live_run.h"
#include "results/stats/statistics.h"
#include "strategies/programs/program.h"
#include "strategies/store.h"

namespace lockbench::loadgen {
namespace {

double per(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
}

results::Outcomes outcomes_of(const Recorder& recorder) {
  const auto count = [&](AcquireOutcome outcome) {
    return recorder.outcome_count(Phase::measured, outcome);
  };
  return {.timed_out = count(AcquireOutcome::timed_out),
          .refused = count(AcquireOutcome::refused),
          .failed = count(AcquireOutcome::failed),
          .unknown = count(AcquireOutcome::unknown),
          .abandoned = count(AcquireOutcome::abandoned)};
}

/// Sets every figure of the list that has a place in the result.
template <class Rows, class ValueOf>
void fill(const Rows& rows, results::Run& result, const ValueOf& value_of) {
  for (const auto& row : rows) {
    auto* const place = row.in_run == nullptr ? nullptr : row.in_run(result);
    if (place != nullptr) *place = value_of(row);
  }
}

void derive_ratios(const Counts& counts, results::Run& result) {
  const auto per_section = [&](Count what) { return per(counts[what], result.sections); };
  // Per lock, as a section may take several.
  const auto per_wait = [&](Count what) { return per(counts[what], result.acquire.count); };
  result.wait = {.round_trip_seconds = per_wait(Count::round_trip_ns) * 1e-9,
                 .backoff_seconds = per_wait(Count::backoff_ns) * 1e-9,
                 .notified_seconds = per_wait(Count::notified_ns) * 1e-9};
  result.attempts_per_grant = per_wait(Count::granted_attempts);
  result.commands_per_section = per_section(Count::commands);
  if (counts[Count::wakes] > 0) {
    result.herd_factor = per(counts[Count::wakes], result.outcomes.acquired);
  }
  if (result.duration_seconds > 0) {
    result.sections_per_second = static_cast<double>(result.sections) / result.duration_seconds;
  }
  if (result.transactions && result.duration_seconds > 0) {
    result.transactions->locks_per_second =
        static_cast<double>(result.outcomes.acquired) / result.duration_seconds;
  }
  if (result.renewal) {
    result.renewal->commands_per_second =
        static_cast<double>(counts[Count::renewal_commands]) / result.duration_seconds;
  }
  if (result.quorum) {
    const std::uint64_t grants = result.quorum->validity.count;
    result.quorum->rounds_per_grant = grants == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                  : per(counts[Count::quorum_rounds], grants);
  }
}

/// The groups of figures that only some loads have.
void add_groups(const Workload& load, const Recorder& recorder, results::Run& result) {
  const Recorder::Histograms& histograms = recorder.histograms(Phase::measured);
  const auto any = [&](Timing timing) {
    return histograms[timing].snapshot().count() +
               recorder.censored(Phase::measured, timing).count() >
           0;
  };
  if (any(Timing::exclusive) && any(Timing::shared)) result.acquire_by_mode.emplace();
  if (any(Timing::transaction)) result.transactions.emplace();
  if (any(Timing::echo)) result.program.emplace();
  if (any(Timing::pool_wait) || load.proceeds_on_error) result.application.emplace();
  if (any(Timing::replica_wait)) {
    result.replication.emplace().replicas = recorder.replicas_wanted();
  }
}

/// The votes of each node, by its display name without secrets; nothing for a lock without a
/// quorum.
std::optional<results::Quorum> quorum_of(const RunShared& run) {
  const auto& nodes = run.recorder.histograms(Phase::measured).nodes;
  if (nodes.empty()) return std::nullopt;
  const StoreKind* const kind = find_store_kind(run.strategy.backend);
  const std::vector<std::string> urls = urls_of(run.strategy, run.endpoints);
  results::Quorum quorum{.nodes = nodes.size()};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto name = kind == nullptr ? "?" : kind->display(urls.at(i)).value_or("?");
    quorum.votes.push_back({.node = name,
                            .granted = nodes[i].count(Vote::granted),
                            .refused = nodes[i].count(Vote::refused),
                            .failed = nodes[i].count(Vote::failed)});
    HistogramSnapshot answers = nodes[i].taken_by(Vote::granted).snapshot();
    answers.merge(nodes[i].taken_by(Vote::refused).snapshot());
    quorum.node_seconds.push_back(to_distribution(answers));
  }
  return quorum;
}

results::Fairness fairness_of(const RunShared& run, const results::Run& result) {
  results::Fairness fairness;
  for (int client = 0; client < run.recorder.client_count(); ++client) {
    fairness.per_client.push_back(
        run.recorder.client(client).counts(Phase::measured)[Count::sections]);
  }
  fairness.jain = result.sections == 0 ? std::numeric_limits<double>::quiet_NaN()
                                       : results::jain_index(fairness.per_client);
  fairness.longest_streak = run.audit.totals().longest_streak;
  // A transaction waits as a whole, including requests in vain.
  const results::Distribution& waits =
      result.transactions ? result.transactions->acquire : result.acquire;
  // A client that starved since the warm-up is not hidden, though its wait is of the warm-up.
  const HistogramSnapshot carried =
      run.recorder.histograms(Phase::measured)[Timing::carried].snapshot();
  fairness.longest_wait_seconds = std::max(waits.max, seconds(carried.max));
  // Any wait that was cut off may have become the longest.
  fairness.longest_wait_at_least = waits.censored.count > 0;
  fairness.by_client = run.recorder.waits().by_client();
  if (!fairness.by_client) return fairness;
  // Its buckets are coarse: their midpoints may be above the longest wait.
  results::ByClient& by_client = *fairness.by_client;
  for (double* const figure :
       {&by_client.p50, &by_client.p99, &by_client.p999, &by_client.worst_p99}) {
    *figure = std::min(*figure, fairness.longest_wait_seconds);
  }
  return fairness;
}

/// Nothing if sections of one key may be inside together, or hold several locks at once.
std::optional<double> lock_taken(const RunShared& run, const results::Run& result) {
  const Workload& load = run.workload;
  if (!run.strategy.traits.promises_exclusion || load.has_shared_sections() ||
      load.has_transactions() || holders_at_once(run.strategy.traits, load.strategy) > 1) {
    return std::nullopt;
  }
  return service_times({&result, 1})
      .lock_taken(result.sections_per_second, {.busiest_key = busiest_key_share(load)});
}

void summarise_audit(const RunShared& run, results::Run& result) {
  results::Audit& audit = result.audit;
  const AuditTotals totals = run.audit.totals();
  audit.overlaps = totals.overlaps;
  audit.overlap_seconds = seconds(totals.overlap_time);
  audit.fence_regressions = totals.fence_regressions;
  if (const auto counter = run.counter->totals()) {
    audit.increments = counter->accepted;
    audit.counter = counter->moved;
    // Those inside together overwrite each other's updates: no fault of a semaphore.
    if (holders_at_once(run.strategy.traits, run.workload.strategy) == 1) {
      audit.lost_updates = counter->lost;
      audit.lost_updates_max = counter->lost_max;
    }
    audit.stale_writes_rejected = counter->rejected_stale;
  } else {
    result.errors.push_back("the counter could not be read: " + counter.error());
  }
  const std::uint64_t violations =
      std::max({audit.lost_updates, audit.overlaps, audit.fence_regressions});
  audit.violations_per_million = results::most_per_million(violations, audit.contended_grants);
  if (violations > 0) {
    const Traits& traits = run.strategy.traits;
    audit.verdict = traits.promises_exclusion || traits.updates ? results::Verdict::violated
                                                                : results::Verdict::unprotected;
  } else if (audit.increments == 0) {
    // Without an accepted write nothing was audited, and "exclusive" would be a false success.
    audit.verdict = results::Verdict::unaudited;
  } else if (audit.contended_grants < run.workload.contended_grants) {
    audit.verdict = results::Verdict::untested;
  } else if (run.strategy.traits.updates) {
    audit.verdict = results::Verdict::counted;
  }
}

}  // namespace

void summarise(const RunShared& run, Duration measured, results::Run& result) {
  const Recorder& recorder = run.recorder;
  const Counts counts = recorder.totals(Phase::measured);
  result.strategy = run.strategy.name;
  result.backend = run.strategy.backend;
  result.load = load_of(run.workload);
  result.errors = recorder.failures();
  result.duration_seconds = seconds(measured);
  result.outcomes = outcomes_of(recorder);
  const std::uint64_t renewals =
      counts[Count::renewals] + counts[Count::renewals_lost] + counts[Count::renewals_failed];
  if (renewals > 0 && measured > Duration::zero()) result.renewal.emplace();
  result.quorum = quorum_of(run);
  add_groups(run.workload, recorder, result);
  const Counts whole_run = recorder.totals();
  const program::Client* const client = program::client_of(run.strategy);
  if (client != nullptr) {
    const int carried = run.workload.strategy.clients_per_process;
    const int processes = (recorder.client_count() + carried - 1) / carried;
    result.program = {.name = client->library,
                      .version = client->version,
                      .processes = static_cast<std::uint64_t>(processes)};
  }
  fill(kCounts, result,
       [&](const CountInfo& row) { return (row.whole_run ? whole_run : counts)[row.kind]; });
  fill(kTimings, result, [&](const TimingInfo& row) {
    return to_distribution(recorder.histograms(Phase::measured)[row.kind].snapshot(),
                           recorder.censored(Phase::measured, row.kind));
  });
  for (const auto& [command, times] : recorder.command_snapshots()) {
    result.commands.emplace(command, to_distribution(times));
  }
  derive_ratios(counts, result);
  if (client != nullptr) {
    // What a library does within a call does not show.
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    result.wait = {kUnknown, kUnknown, kUnknown};
    result.attempts_per_grant = result.commands_per_section = kUnknown;
  }
  result.lock_taken = lock_taken(run, result);
  result.fairness = fairness_of(run, result);
  summarise_audit(run, result);
}

std::uint64_t overflowed_samples(results::Run& run) {
  std::uint64_t overflow = 0;
  for (const TimingInfo& row : kTimings) {
    const auto* const distribution = row.in_run == nullptr ? nullptr : row.in_run(run);
    if (distribution == nullptr) continue;
    overflow += distribution->overflow + distribution->censored.overflow;
  }
  if (run.quorum) {
    for (const auto& node : run.quorum->node_seconds) overflow += node.overflow;
  }
  return overflow;
}

results::SeriesPoint SeriesSampler::sample(TimePoint now) {
  HistogramSnapshot acquired;
  std::uint64_t failed = 0, sections = 0;
  // Not those that come after the measured window.
  for (const Phase phase : {Phase::unmeasured, Phase::measured}) {
    sections += run_.recorder.total(Count::sections, phase);
    acquired.merge(run_.recorder.histograms(phase)[Timing::acquired].snapshot());
    failed += run_.recorder.outcome_count(phase, AcquireOutcome::failed) +
              run_.recorder.outcome_count(phase, AcquireOutcome::unknown);
  }
  latest_ = acquired.minus(acquired_);
  const results::SeriesPoint point{
      .t = seconds(now - run_.load_start),
      .warmup = begun_.value_or(run_.load_start) < run_.measure_start.load(),
      .sections = sections - sections_,
      .acquire_p50 = seconds(latest_.percentile(0.5)),
      .acquire_p99 = seconds(latest_.percentile(0.99)),
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
