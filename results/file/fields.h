#pragma once

#include <boost/preprocessor.hpp>
#include <concepts>
#include <type_traits>

#include "results/tables/observed.h"

namespace lockbench::results {

inline constexpr const char* kSchema = "lockbench.result/2";

// The single list of the fields of a result file, in order. A visitor offers
//   v(name, value)                    a field; null for an empty optional
//   v.left_out(name, value)           an optional or a list that is left out if empty
//   v.measured(name, value, exists)   a number that is null if there was nothing to measure
//   v.group(name, fill)               an object that is not a struct of the model
//   v.constant(name, text)            a fixed text

/// T is U, const or not.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

/// Whether the file has the struct as a list of its members' values instead of an object.
template <class T>
inline constexpr bool kIsList = Is<T, Distribution::Bucket> || Is<T, NodeVotes>;

// LOCKBENCH_VISIT(object, a, (b)) is v("a", object.a); v.left_out("b", object.b); for at most 64.
#define LOCKBENCH_VISIT(object, ...) \
  BOOST_PP_SEQ_FOR_EACH(LOCKBENCH_MEMBER, object, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))
#define LOCKBENCH_MEMBER(r, object, name)                                                \
  BOOST_PP_IIF(BOOST_PP_IS_BEGIN_PARENS(name), LOCKBENCH_PERHAPS_THERE, LOCKBENCH_THERE) \
  (object, BOOST_PP_REMOVE_PARENS(name))
#define LOCKBENCH_THERE(object, name) v(BOOST_PP_STRINGIZE(name), (object).name);
#define LOCKBENCH_PERHAPS_THERE(object, name) v.left_out(BOOST_PP_STRINGIZE(name), (object).name);

/// For a struct whose fields all have the names of its members.
#define LOCKBENCH_DESCRIBE(Struct, ...)                \
  template <class Visitor>                             \
  void describe(Visitor& v, Is<Struct> auto& object) { \
    LOCKBENCH_VISIT(object, __VA_ARGS__)               \
  }

LOCKBENCH_DESCRIBE(Distribution::Bucket, upper, count)
LOCKBENCH_DESCRIBE(Distribution::Censored, count, buckets, overflow)

template <class Visitor>
void describe(Visitor& v, Is<Distribution> auto& d) {
  LOCKBENCH_VISIT(d, count, censored, at_least)
  const bool any = d.any();
  v.measured("mean", d.mean, any);
  v.measured("stddev", d.stddev, any);
  v.measured("min", d.min, any);
  v.measured("p50", d.p50, any);
  v.measured("p90", d.p90, any);
  v.measured("p95", d.p95, any);
  v.measured("p99", d.p99, any);
  v.measured("p999", d.p999, any);
  v.measured("max", d.max, any);
  v.group("histogram", [&d](auto& histogram) {
    histogram.constant("unit", "s");
    histogram("relative_error", d.relative_error);
    histogram("buckets", d.buckets);
    histogram("overflow", d.overflow);
  });
}

LOCKBENCH_DESCRIBE(Nodes, count, down, frozen, slow, slow_seconds)
LOCKBENCH_DESCRIBE(Load, name, clients, hold_seconds, rate, rtt_seconds, (hot_set), (trace), (pool),
                   (held_locks), (nodes))
LOCKBENCH_DESCRIBE(Outcomes, acquired, timed_out, refused, failed, unknown, abandoned)
LOCKBENCH_DESCRIBE(WaitAnatomy, round_trip_seconds, backoff_seconds, notified_seconds)
LOCKBENCH_DESCRIBE(ByClient, at_least, p50, p99, p999, worst_p99, worst_is_longest)
LOCKBENCH_DESCRIBE(Fairness, jain, longest_streak, longest_wait_seconds, longest_wait_at_least,
                   per_client, by_client)
LOCKBENCH_DESCRIBE(ByMode, exclusive, shared)
LOCKBENCH_DESCRIBE(Transactions, locks_per_second, aborts, retries, deadlocks, acquire,
                   acquire_service)
LOCKBENCH_DESCRIBE(Renewal, renewals, failures, lost, commands_per_second, duration, slip, margin)
LOCKBENCH_DESCRIBE(NodeVotes, node, granted, refused, failed)
LOCKBENCH_DESCRIBE(Quorum, nodes, votes, split_votes, rounds_per_grant, node_seconds, validity)
LOCKBENCH_DESCRIBE(Replication, replicas, refusals, wait)
LOCKBENCH_DESCRIBE(Application, unprotected, pool_timeouts, pool_wait)
LOCKBENCH_DESCRIBE(Program, name, version, processes, echo)
LOCKBENCH_DESCRIBE(Audit, increments, counter, lost_updates, lost_updates_max, overlaps,
                   overlap_seconds, fence_regressions, stale_writes_rejected, resource_failures,
                   contended_grants, violations_per_million, verdict)
LOCKBENCH_DESCRIBE(SeriesPoint, t, warmup, sections, acquire_p50, acquire_p99, failed, waiters,
                   holders)
LOCKBENCH_DESCRIBE(FaultMark, fault, at_seconds, healed_seconds, recovery_seconds, lowest_share)
LOCKBENCH_DESCRIBE(Generator, cpu_seconds, cpu_share, machine_cpu_share, other_cpu_share,
                   steal_share, pressure_share, (clients_on), (threads), (busiest_thread_share),
                   valid, reasons)
LOCKBENCH_DESCRIBE(Rank, rank, host, clients, sections, share, acquire_p50, acquire_p99,
                   cpu_seconds, cpu_share, lag_p99_seconds, late_seconds, outlier, lost, notes)
LOCKBENCH_DESCRIBE(Interval, low, high)
LOCKBENCH_DESCRIBE(Cost, mean, interval)
LOCKBENCH_DESCRIBE(Costs, (throughput), (node_seconds), (node_commands))

template <class Visitor>
void describe(Visitor& v, Is<Run> auto& run) {
  LOCKBENCH_VISIT(run, strategy, backend, repetition, load, (interrupted), warmup_seconds,
                  duration_seconds, sections, sections_per_second, (lock_taken), outcomes)
  for (const auto& field : kRunCounts) v(field.name, run.*field.member);
  for (const auto& field : kRunDistributions) v(field.name, run.*field.member);
  v.group("releases", [&run](auto& releases) {
    releases("not_owner", run.releases_not_owner);
    releases("failed", run.releases_failed);
  });
  LOCKBENCH_VISIT(run, commands, wait, attempts_per_grant, commands_per_section, herd_factor,
                  server_cpu_seconds_per_section, (server_commands_per_section), bytes_per_section,
                  (acquire_by_mode), (transactions), fairness, renewal, quorum, replication,
                  (program), (application), audit, series, faults, generator, (costs), (ranks),
                  errors)
}

LOCKBENCH_DESCRIBE(Server, version, endpoints, (encryption), (warnings))
LOCKBENCH_DESCRIBE(Environment, cpu, cores, kernel, memory_bytes, servers)
LOCKBENCH_DESCRIBE(Build, version, commit, build_type)
LOCKBENCH_DESCRIBE(Skipped, strategy, reason)
LOCKBENCH_DESCRIBE(HazardEvent, t, who, what)
LOCKBENCH_DESCRIBE(Hazard, scenario, strategy, expected, observed, agrees, evidence, timeline)
LOCKBENCH_DESCRIBE(CapacityRate, rate, decision, samples, steps, missed_steps, invalid_steps,
                   figure_low, figure_high, rho, acquire, reason)
LOCKBENCH_DESCRIBE(Capacity, strategy, objective, clients, keys, lowest, highest, ceiling, limit,
                   limit_reason, confirmed, (violated), planned_rate, utilisation, headroom,
                   (keys_needed), rates)

LOCKBENCH_DESCRIBE(Estimate, value, low, high)
LOCKBENCH_DESCRIBE(SimulatedRegion, region, acquire)
LOCKBENCH_DESCRIBE(SweptValue, option, value, (seconds), (number))
LOCKBENCH_DESCRIBE(Simulation, strategy, (swept), clients, keys, seeds, first_seed, sections,
                   simulated_seconds, violations, per_million, per_year, causes, lost_updates,
                   lost_updates_fenced, availability, longest_outage_seconds, acquire, regions,
                   errors)

template <class Visitor>
void describe(Visitor& v, Is<Observed> auto& family) {
  LOCKBENCH_VISIT(family, store, endpoint, family, source, accuracy)
  for (const FamilyRow& row : kFamilyRows) {
    std::visit([&](auto member) { v(row.name, family.*member); }, row.member);
  }
}

LOCKBENCH_DESCRIBE(ObservedLock::Moment, t, what, holder, waiting)
LOCKBENCH_DESCRIBE(ObservedLock, store, endpoint, family, lock, shape, trouble, holder,
                   held_seconds, ttl_left_seconds, waiting_now, acquisitions, expired_while_held,
                   most_waiting, history)
LOCKBENCH_DESCRIBE(ObservedFinding, kind, store, endpoint, family, lock, times, first_seconds,
                   last_seconds, over, evidence, advice)
LOCKBENCH_DESCRIBE(ObservedSource, store, endpoint, way, accuracy, waiters, unseen, no_locks,
                   watched_seconds, blind_seconds, missed, commands)

template <class Visitor>
void describe(Visitor& v, Is<Result> auto& result) {
  v.constant("schema", kSchema);
  LOCKBENCH_VISIT(result, id, started_at, (command), interrupted, (exit_code), lockbench,
                  environment, workload, skipped, runs, (hazards), (capacity), (simulation),
                  (observed), (locks), (findings), (sources), (proposals))
}

#undef LOCKBENCH_VISIT
#undef LOCKBENCH_MEMBER
#undef LOCKBENCH_THERE
#undef LOCKBENCH_PERHAPS_THERE
#undef LOCKBENCH_DESCRIBE

}  // namespace lockbench::results
