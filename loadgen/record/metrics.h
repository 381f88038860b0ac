#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "results/file/model.h"
#include "strategies/lock_strategy.h"

// The only list of a run's metrics, and of where each figure goes. The recorder, the summary of a
// run, its result file and the exporter derive from it. A new metric needs an enumerator and a row
// here, a call that records it, and a field of results::Run.
namespace lockbench::loadgen {

/// Why a section did not get its lock. A fixed list, so that it can be a label of a metric.
enum class FailureReason : std::size_t {
  taken,
  refused,
  auth,
  oom,
  readonly,
  busy,
  timeout,
  unreachable,
  slow,
  other,
  kinds,
};

struct FailureReasonInfo {
  const char* name;
  const char* meaning;
};

/// By FailureReason.
inline constexpr std::array<FailureReasonInfo, static_cast<std::size_t>(FailureReason::kinds)>
    kFailureReasons{{
        {"taken", "somebody else holds the lock"},
        {"refused", "the lock cannot be granted as safely as requested"},
        {"auth", "the store does not accept the user, the password or the rights"},
        {"oom", "the store has no room left"},
        {"readonly", "the store takes no writes"},
        {"busy", "the store is loading, or busy with something else"},
        {"timeout", "the store does not answer in time"},
        {"unreachable", "there is no connection to the store"},
        {"slow", "the section was skipped, as earlier ones were late"},
        {"other", "something else"},
    }};

constexpr const FailureReasonInfo& info_of(FailureReason reason) {
  return kFailureReasons[static_cast<std::size_t>(reason)];
}

/// By the message of a failed command.
FailureReason reason_of(std::string_view message);

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

/// Figures of the warm-up (unmeasured), and of what comes after the measured window while its last
/// waits run out (ending), are separate. A wait belongs to the phase in which it was due to begin,
/// and a handoff to that of its release, with their whole lengths; a wait through the whole window
/// belongs to the window. A section, its grant and its
/// effort belong to the phase of the grant: otherwise a lock would seem to carry what it only
/// queued.
enum class Phase : std::uint8_t { unmeasured, measured, ending };
inline constexpr std::array kPhases{Phase::unmeasured, Phase::measured, Phase::ending};

/// Durations, each kept as a histogram.
enum class Timing : std::size_t {
  acquired,  ///< acquisitions by outcome, in the order of AcquireOutcome, from the intended start
  timed_out,
  refused,
  failed,
  unknown,
  abandoned,
  uncontended,      ///< granted while no other client held or wanted the lock in a conflicting mode
  acquire_service,  ///< granted, from the actual start
  service_cut,      ///< timed out or abandoned, from the actual start
  exclusive,        ///< acquisitions by mode, in loads with shared sections
  exclusive_cut,
  shared,
  shared_cut,
  transaction,  ///< from a section's intended start to the last of its locks, if it takes several
  transaction_cut,
  transaction_service,  ///< the same from the actual start
  transaction_service_cut,
  carried,  ///< waits of whole sections that began in the warm-up and ended in the measured window
  hold,
  release,
  handoff,
  handoff_cut,   ///< no client waiting at that release was granted the lock
  turnaround,    ///< from the start of an awaited release to the next grant, to any client
  schedule_lag,  ///< open loop: actual start after intended start
  wake_lag,      ///< the part of schedule_lag that the generator causes by waking up late
  turn_lag,      ///< from the arrival of an answer until its client's turn on the thread; a sample
  loss_to_knowledge,
  renewal_duration,
  renewal_slip,
  renewal_margin,
  quorum_validity,  ///< left at the grant
  replica_wait,     ///< for the acknowledgements of replicas
  echo,             ///< an empty request to a client program
  pool_wait,        ///< for a connection
  kinds,
};

constexpr Timing acquire_timing(AcquireOutcome outcome) { return static_cast<Timing>(outcome); }

/// Sums. Those up to failed_other are kept for each client, the others for the shared services.
enum class Count : std::size_t {
  sections,
  shared_sections,
  grants,
  attempts,
  granted_attempts,  ///< of granted acquisitions only, like the three parts of their time below
  commands,          ///< of the lock, including those for renewal and notification
  wakes,             ///< waits for the lock ended by a wake-up
  round_trip_ns,
  backoff_ns,
  notified_ns,
  leases_lost,
  releases_not_owner,
  releases_failed,
  contended_grants,       ///< another client held or wanted the lock in a conflicting mode
  awaited_releases,       ///< at which a client waited
  direct_handoffs,        ///< of these, with the next grant to such a client
  overtakings,            ///< grants to clients that came after an awaited release
  stale_rejected,         ///< reads and writes refused by a counter for their old fencing number
  resource_failures,      ///< reads and writes of the protected counter that failed
  transaction_aborts,     ///< attempts at all locks of a section that did not get all of them
  transaction_retries,    ///< attempts after those
  transaction_deadlocks,  ///< found by the store, or time-outs of sections with a lock, as drawn
  unprotected,            ///< sections without their lock, as its acquisition failed
  pool_timeouts,          ///< sections that got no connection in time
  failed_taken,           ///< sections without a lock by reason, in the order of FailureReason
  failed_refused,
  failed_auth,
  failed_oom,
  failed_readonly,
  failed_busy,
  failed_timeout,
  failed_unreachable,
  failed_slow,
  failed_other,
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

constexpr Count count_of(FailureReason reason) {
  return static_cast<Count>(static_cast<std::size_t>(Count::failed_taken) +
                            static_cast<std::size_t>(reason));
}

/// A metric of Prometheus; without a name, the figure is not exported. Rows with the same name are
/// series of one metric with different labels.
struct ExportedAs {
  const char* name = nullptr;
  const char* help = nullptr;
  const char* label = nullptr;
  const char* label_value = nullptr;
  const char* outcome = nullptr;  ///< a second label
};

template <class Kind, class Value>
struct MetricInfo {
  Kind kind;
  /// Its place in a run's result; without a function, the file lacks it. Returns nullptr if the run
  /// has no such group.
  Value* (*in_run)(results::Run&) = nullptr;
  ExportedAs exported{};
  double unit = 1;             ///< of the exported figure
  bool whole_run = false;      ///< includes the warm-up and the end, as the audit does
  Kind censors = Kind::kinds;  ///< of a timing: its samples are cut-off samples of this one
};
using TimingInfo = MetricInfo<Timing, results::Distribution>;
using CountInfo = MetricInfo<Count, std::uint64_t>;

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

constexpr ExportedAs metric(const char* name, const char* help) { return {name, help}; }
constexpr ExportedAs acquire_metric(const char* outcome) {
  return {
      "lockbench_acquire_duration_seconds",
      "Time from a section's intended start until its acquisition ended, by outcome; for further "
      "locks and attempts of the section, from their own request.",
      "outcome", outcome};
}
/// Of an acquisition that was granted, or cut off by a time-out or the end of the run.
inline constexpr const char* kAcquired = "acquired";
inline constexpr const char* kCutOff = "cut_off";

constexpr ExportedAs mode_metric(const char* mode, const char* outcome) {
  return {"lockbench_acquire_by_mode_duration_seconds",
          "Acquire durations in loads with shared sections: acquired, or cut off by a time-out or "
          "the end of the run.",
          "mode", mode, outcome};
}
constexpr ExportedAs transaction_metric(const char* outcome) {
  return {"lockbench_transaction_acquire_duration_seconds",
          "Time from a section's intended start to the last of its locks, if it takes several, "
          "or until it was cut off.",
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

/// A timing whose samples are cut-off samples of another one.
constexpr TimingInfo cut(Timing kind, Timing censors, ExportedAs exported = {}) {
  return {.kind = kind, .exported = exported, .censors = censors};
}

constexpr CountInfo failure_row(FailureReason reason) {
  return {count_of(reason),
          nullptr,
          {"lockbench_acquire_failures_total",
           "Sections that did not get their lock, by reason; those that the end of a run cut off "
           "are not included.",
           "reason", info_of(reason).name}};
}

/// In the order of Timing.
inline constexpr auto kTimings = std::to_array<TimingInfo>({
    {Timing::acquired, field<&results::Run::acquire>, acquire_metric("acquired")},
    cut(Timing::timed_out, Timing::acquired, acquire_metric("timed_out")),
    {Timing::refused, nullptr, acquire_metric("refused")},
    {Timing::failed, nullptr, acquire_metric("failed")},
    {Timing::unknown, nullptr, acquire_metric("unknown")},
    cut(Timing::abandoned, Timing::acquired, acquire_metric("abandoned")),
    {Timing::uncontended, nullptr,
     metric("lockbench_uncontended_acquire_duration_seconds",
            "Time from a section's intended start to its grant, if no other client of the run held "
            "or wanted the lock in a conflicting mode.")},
    {Timing::acquire_service, field<&results::Run::acquire_service>},
    cut(Timing::service_cut, Timing::acquire_service),
    {Timing::exclusive, field<&results::Run::acquire_by_mode, &results::ByMode::exclusive>,
     mode_metric("exclusive", kAcquired)},
    cut(Timing::exclusive_cut, Timing::exclusive, mode_metric("exclusive", kCutOff)),
    {Timing::shared, field<&results::Run::acquire_by_mode, &results::ByMode::shared>,
     mode_metric("shared", kAcquired)},
    cut(Timing::shared_cut, Timing::shared, mode_metric("shared", kCutOff)),
    {Timing::transaction, field<&results::Run::transactions, &results::Transactions::acquire>,
     transaction_metric(kAcquired)},
    cut(Timing::transaction_cut, Timing::transaction, transaction_metric(kCutOff)),
    {Timing::transaction_service,
     field<&results::Run::transactions, &results::Transactions::acquire_service>},
    cut(Timing::transaction_service_cut, Timing::transaction_service),
    {Timing::carried},
    {Timing::hold, field<&results::Run::hold>,
     metric("lockbench_hold_duration_seconds",
            "Time inside the section; of several locks, from the grant of each.")},
    {Timing::release, field<&results::Run::release>,
     metric("lockbench_release_duration_seconds", "Duration of a release.")},
    {Timing::handoff, field<&results::Run::handoff>,
     metric("lockbench_handoff_duration_seconds",
            "Time from the start of a release to the next grant to a client that was waiting.")},
    cut(Timing::handoff_cut, Timing::handoff),
    {Timing::turnaround, field<&results::Run::turnaround>,
     metric("lockbench_turnaround_duration_seconds",
            "Time from the start of a release at which a client waited to the next grant.")},
    {Timing::schedule_lag, field<&results::Run::schedule_lag>,
     metric("lockbench_schedule_lag_seconds",
            "Open loop: how late sections began, compared with their intended start.")},
    {Timing::wake_lag},
    {Timing::turn_lag},
    {Timing::loss_to_knowledge, field<&results::Run::loss_to_knowledge>,
     metric("lockbench_loss_to_knowledge_seconds",
            "Time from the end of a lost lease's validity until its holder knew.")},
    {Timing::renewal_duration, field<&results::Run::renewal, &results::Renewal::duration>,
     metric("lockbench_renewal_duration_seconds", "Time from sending a renewal to its answer.")},
    {Timing::renewal_slip, field<&results::Run::renewal, &results::Renewal::slip>,
     metric("lockbench_renewal_slip_seconds",
            "How late renewals were sent, compared with when they were due.")},
    {Timing::renewal_margin, field<&results::Run::renewal, &results::Renewal::margin>,
     metric("lockbench_renewal_margin_seconds",
            "Validity that a lease had left when its renewal was answered.")},
    {Timing::quorum_validity, field<&results::Run::quorum, &results::Quorum::validity>,
     metric("lockbench_quorum_validity_seconds",
            "Validity that was left when a quorum had granted the lock.")},
    {Timing::replica_wait, field<&results::Run::replication, &results::Replication::wait>},
    {Timing::echo, field<&results::Run::program, &results::Program::echo>,
     metric("lockbench_program_echo_duration_seconds",
            "Round trip of an empty request to a client program, beside its load.")},
    {Timing::pool_wait, field<&results::Run::application, &results::Application::pool_wait>,
     metric("lockbench_pool_wait_duration_seconds", "Waits for a connection of the pool.")},
});

/// In the order of Count.
inline constexpr auto kCounts = std::to_array<CountInfo>({
    {Count::sections, field<&results::Run::sections>},
    {Count::shared_sections, field<&results::Run::shared_sections>},
    {Count::grants, field<&results::Run::outcomes, &results::Outcomes::acquired>},
    {Count::attempts, nullptr,
     metric("lockbench_acquire_attempts_total", "Attempts to get the lock.")},
    {Count::granted_attempts},
    {Count::commands, nullptr,
     metric("lockbench_store_commands_total",
            "Commands sent to the lock's store, including renewal and notification.")},
    {Count::wakes},
    {Count::round_trip_ns, nullptr, wait_metric("round_trip"), 1e-9},
    {Count::backoff_ns, nullptr, wait_metric("backoff"), 1e-9},
    {Count::notified_ns, nullptr, wait_metric("notified"), 1e-9},
    {Count::leases_lost, field<&results::Run::leases_lost>,
     metric("lockbench_leases_lost_total", "Leases that were lost while they were held.")},
    {Count::releases_not_owner, field<&results::Run::releases_not_owner>},
    {Count::releases_failed, field<&results::Run::releases_failed>},
    {.kind = Count::contended_grants,
     .in_run = field<&results::Run::audit, &results::Audit::contended_grants>,
     .exported = metric("lockbench_contended_grants_total",
                        "Grants for which another client held or wanted the lock in a "
                        "conflicting mode."),
     .whole_run = true},
    {Count::awaited_releases, field<&results::Run::awaited_releases>,
     metric("lockbench_awaited_releases_total", "Releases at which a client waited.")},
    {Count::direct_handoffs, field<&results::Run::direct_handoffs>,
     metric("lockbench_direct_handoffs_total",
            "Awaited releases whose next grant went to a client that was waiting.")},
    {Count::overtakings, field<&results::Run::overtakings>,
     metric("lockbench_overtakings_total",
            "Grants to clients that began to wait after an awaited release.")},
    {.kind = Count::stale_rejected,
     .exported = metric("lockbench_stale_writes_rejected_total",
                        "Reads and writes that the counter refused because of an old "
                        "fencing number."),
     .whole_run = true},
    {.kind = Count::resource_failures,
     .in_run = field<&results::Run::audit, &results::Audit::resource_failures>,
     .whole_run = true},
    {Count::transaction_aborts, field<&results::Run::transactions, &results::Transactions::aborts>,
     metric("lockbench_transaction_aborts_total",
            "Attempts at all locks of a section that did not get all of them.")},
    {Count::transaction_retries,
     field<&results::Run::transactions, &results::Transactions::retries>,
     metric("lockbench_transaction_retries_total", "Further attempts at all locks of a section.")},
    {Count::transaction_deadlocks,
     field<&results::Run::transactions, &results::Transactions::deadlocks>,
     metric("lockbench_transaction_deadlocks_total",
            "Deadlocks that the store broke, and time-outs of sections that held a lock, with "
            "locks taken as drawn.")},
    {Count::unprotected, field<&results::Run::application, &results::Application::unprotected>,
     metric("lockbench_unprotected_sections_total",
            "Sections that ran without their lock, as its acquisition had failed.")},
    {Count::pool_timeouts, field<&results::Run::application, &results::Application::pool_timeouts>,
     metric("lockbench_pool_timeouts_total",
            "Sections that got no connection of the pool in time.")},
    failure_row(FailureReason::taken),
    failure_row(FailureReason::refused),
    failure_row(FailureReason::auth),
    failure_row(FailureReason::oom),
    failure_row(FailureReason::readonly),
    failure_row(FailureReason::busy),
    failure_row(FailureReason::timeout),
    failure_row(FailureReason::unreachable),
    failure_row(FailureReason::slow),
    failure_row(FailureReason::other),
    {Count::renewals, field<&results::Run::renewal, &results::Renewal::renewals>,
     renewal_metric("renewed")},
    {Count::renewals_lost, field<&results::Run::renewal, &results::Renewal::lost>,
     renewal_metric("lost")},
    {Count::renewals_failed, field<&results::Run::renewal, &results::Renewal::failures>,
     renewal_metric("failed")},
    {Count::renewal_commands},
    {Count::quorum_rounds, nullptr,
     metric("lockbench_quorum_rounds_total", "Rounds in which the nodes of a quorum were asked.")},
    {Count::split_votes, field<&results::Run::quorum, &results::Quorum::split_votes>,
     metric("lockbench_quorum_split_votes_total",
            "Rounds that no client won because several had votes.")},
    {Count::replica_refusals, field<&results::Run::replication, &results::Replication::refusals>},
});

template <class Kind, class Value, std::size_t N>
constexpr bool in_order(const std::array<MetricInfo<Kind, Value>, N>& rows) {
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].kind != static_cast<Kind>(i)) return false;
  }
  return N == static_cast<std::size_t>(Kind::kinds);
}
static_assert(in_order(kTimings) && in_order(kCounts));
static_assert(count_of(FailureReason::other) == Count::failed_other);

}  // namespace lockbench::loadgen
