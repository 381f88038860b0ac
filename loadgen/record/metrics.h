#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "results/file/model.h"
#include "strategies/lock_strategy.h"

// The one list of what a run measures, and where each figure goes. The recorder, the summary of a
// run, its result file and the exporter derive from it. A new metric is an enumerator and a row
// here, a call that records it, and a field of results::Run.
namespace lockbench::loadgen {

/// One T for each enumerator of an enum that ends with `kinds`.
template <class Kind, class T>
struct ByKind {
  std::array<T, static_cast<std::size_t>(Kind::kinds)> values{};

  T& operator[](Kind kind) { return values[static_cast<std::size_t>(kind)]; }
  const T& operator[](Kind kind) const { return values[static_cast<std::size_t>(kind)]; }
  ByKind& operator+=(const ByKind& more) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += more.values[i];
    return *this;
  }
};

/// Durations, each kept as a histogram.
enum class Timing : std::size_t {
  acquired,  ///< acquisitions by outcome, in the order of AcquireOutcome, from the intended start
  timed_out,
  refused,
  failed,
  unknown,
  abandoned,
  acquire_service,  ///< granted, from the actual start
  hold,
  release,
  handoff,
  schedule_lag,  ///< open loop: actual start after intended start
  wake_lag,      ///< the part of schedule_lag that the generator causes by waking up late
  loss_to_knowledge,
  renewal_duration,
  renewal_slip,
  renewal_margin,
  quorum_validity,  ///< left at the grant
  replica_wait,     ///< for the acknowledgements of replicas
  kinds,
};

constexpr Timing acquire_timing(AcquireOutcome outcome) { return static_cast<Timing>(outcome); }

/// Sums. Those up to resource_failures are kept for each client, the others for the services that
/// clients share.
enum class Count : std::size_t {
  sections,
  shared_sections,
  attempts,
  granted_attempts,  ///< of granted acquisitions only, like the three parts of their time below
  commands,          ///< of the lock, including those for renewal and notification
  wakes,             ///< waits for the lock that a wake-up ended
  round_trip_ns,
  backoff_ns,
  notified_ns,
  leases_lost,
  releases_not_owner,
  releases_failed,
  stale_rejected,     ///< reads and writes that a counter refused for their old fencing number
  resource_failures,  ///< reads and writes of the protected counter that failed
  renewals,
  renewals_lost,
  renewals_failed,
  renewal_commands,
  quorum_rounds,
  split_votes,
  replica_refusals,  ///< too few replicas acknowledged in time
  kinds,
};
inline constexpr auto kClientCounts = static_cast<std::size_t>(Count::renewals);

/// A metric of Prometheus; no name: the figure is not exported. Rows with the same name are series
/// of one metric, told apart by the label.
struct ExportedAs {
  const char* name = nullptr;
  const char* help = nullptr;
  const char* label = nullptr;
  const char* label_value = nullptr;
};

struct TimingInfo {
  Timing timing;
  /// Its place in a run's result; nullptr: the file does not have it. Returns nullptr if the run
  /// has no such group.
  results::Distribution* (*in_run)(results::Run&) = nullptr;
  ExportedAs exported{};
};

struct CountInfo {
  Count count;
  std::uint64_t* (*in_run)(results::Run&) = nullptr;
  ExportedAs exported{};
  double unit = 1;         ///< of the exported figure
  bool whole_run = false;  ///< includes the warm-up and the end, as the audit does
};

/// A member of a run, or of one of its groups, as `in_run`.
template <auto Member>
auto* field(results::Run& run) {
  return &(run.*Member);
}
template <auto Group, auto Member>
auto* field(results::Run& run) {
  auto& group = run.*Group;
  if constexpr (requires { group.has_value(); }) {
    return group ? &((*group).*Member) : nullptr;
  } else {
    return &(group.*Member);
  }
}

constexpr ExportedAs acquire_metric(const char* outcome) {
  return {"lockbench_acquire_duration_seconds",
          "Time from a section's intended start until its acquisition ended, by outcome.",
          "outcome", outcome};
}
constexpr ExportedAs wait_metric(const char* part) {
  return {"lockbench_wait_seconds_total", "Where granted acquisitions spent their time.", "part",
          part};
}
constexpr ExportedAs renewal_metric(const char* outcome) {
  return {"lockbench_renewals_total",
          "Renewals of held leases: renewed, lost (the store no longer knew the owner) or failed.",
          "outcome", outcome};
}

/// In the order of Timing.
inline constexpr std::array kTimings{
    TimingInfo{Timing::acquired, field<&results::Run::acquire>, acquire_metric("acquired")},
    TimingInfo{Timing::timed_out, nullptr, acquire_metric("timed_out")},
    TimingInfo{Timing::refused, nullptr, acquire_metric("refused")},
    TimingInfo{Timing::failed, nullptr, acquire_metric("failed")},
    TimingInfo{Timing::unknown, nullptr, acquire_metric("unknown")},
    TimingInfo{Timing::abandoned, nullptr, acquire_metric("abandoned")},
    TimingInfo{Timing::acquire_service, field<&results::Run::acquire_service>},
    TimingInfo{Timing::hold,
               field<&results::Run::hold>,
               {"lockbench_hold_duration_seconds", "Time inside the section."}},
    TimingInfo{Timing::release,
               field<&results::Run::release>,
               {"lockbench_release_duration_seconds", "Duration of a release."}},
    TimingInfo{
        Timing::handoff,
        field<&results::Run::handoff>,
        {"lockbench_handoff_duration_seconds",
         "Time from the start of a release to the next grant to a client that was waiting."}},
    TimingInfo{Timing::schedule_lag,
               field<&results::Run::schedule_lag>,
               {"lockbench_schedule_lag_seconds",
                "Open loop: how late sections began, compared with their intended start."}},
    TimingInfo{Timing::wake_lag},
    TimingInfo{Timing::loss_to_knowledge,
               field<&results::Run::loss_to_knowledge>,
               {"lockbench_loss_to_knowledge_seconds",
                "Time from the end of a lost lease's validity until its holder knew."}},
    TimingInfo{
        Timing::renewal_duration,
        field<&results::Run::renewal, &results::Renewal::duration>,
        {"lockbench_renewal_duration_seconds", "Time from sending a renewal to its answer."}},
    TimingInfo{Timing::renewal_slip,
               field<&results::Run::renewal, &results::Renewal::slip>,
               {"lockbench_renewal_slip_seconds",
                "How late renewals were sent, compared with when they were due."}},
    TimingInfo{Timing::renewal_margin,
               field<&results::Run::renewal, &results::Renewal::margin>,
               {"lockbench_renewal_margin_seconds",
                "Validity that a lease had left when its renewal was answered."}},
    TimingInfo{Timing::quorum_validity,
               field<&results::Run::quorum, &results::Quorum::validity>,
               {"lockbench_quorum_validity_seconds",
                "Validity that was left when a quorum had granted the lock."}},
    TimingInfo{Timing::replica_wait,
               field<&results::Run::replication, &results::Replication::wait>},
};

/// In the order of Count.
inline constexpr std::array kCounts{
    CountInfo{Count::sections, field<&results::Run::sections>},
    CountInfo{Count::shared_sections, field<&results::Run::shared_sections>},
    CountInfo{Count::attempts,
              nullptr,
              {"lockbench_acquire_attempts_total", "Attempts to get the lock."}},
    CountInfo{Count::granted_attempts},
    CountInfo{Count::commands,
              nullptr,
              {"lockbench_store_commands_total",
               "Commands sent to the lock's store, including renewal and notification."}},
    CountInfo{Count::wakes},
    CountInfo{Count::round_trip_ns, nullptr, wait_metric("round_trip"), 1e-9},
    CountInfo{Count::backoff_ns, nullptr, wait_metric("backoff"), 1e-9},
    CountInfo{Count::notified_ns, nullptr, wait_metric("notified"), 1e-9},
    CountInfo{Count::leases_lost,
              field<&results::Run::leases_lost>,
              {"lockbench_leases_lost_total", "Leases that were lost while they were held."}},
    CountInfo{Count::releases_not_owner, field<&results::Run::releases_not_owner>},
    CountInfo{Count::releases_failed, field<&results::Run::releases_failed>},
    CountInfo{.count = Count::stale_rejected,
              .exported = {"lockbench_stale_writes_rejected_total",
                           "Reads and writes that the counter refused because of an old fencing "
                           "number."},
              .whole_run = true},
    CountInfo{.count = Count::resource_failures,
              .in_run = field<&results::Run::audit, &results::Audit::resource_failures>,
              .whole_run = true},
    CountInfo{Count::renewals, field<&results::Run::renewal, &results::Renewal::renewals>,
              renewal_metric("renewed")},
    CountInfo{Count::renewals_lost, field<&results::Run::renewal, &results::Renewal::lost>,
              renewal_metric("lost")},
    CountInfo{Count::renewals_failed, field<&results::Run::renewal, &results::Renewal::failures>,
              renewal_metric("failed")},
    CountInfo{Count::renewal_commands},
    CountInfo{
        Count::quorum_rounds,
        nullptr,
        {"lockbench_quorum_rounds_total", "Rounds in which the nodes of a quorum were asked."}},
    CountInfo{Count::split_votes,
              field<&results::Run::quorum, &results::Quorum::split_votes>,
              {"lockbench_quorum_split_votes_total",
               "Rounds that no client won because several had votes."}},
    CountInfo{Count::replica_refusals,
              field<&results::Run::replication, &results::Replication::refusals>},
};

template <class Row, std::size_t N, class Kind>
constexpr bool in_order(const std::array<Row, N>& rows, Kind Row::*kind) {
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].*kind != static_cast<Kind>(i)) return false;
  }
  return N == static_cast<std::size_t>(Kind::kinds);
}
static_assert(in_order(kTimings, &TimingInfo::timing) && in_order(kCounts, &CountInfo::count));

}  // namespace lockbench::loadgen
