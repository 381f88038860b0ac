#pragma once

#include "results/file/capacity_fields.h"
#include "results/file/is.h"
#include "results/file/model.h"

namespace lockbench::results {

inline constexpr const char* kSchema = "lockbench.result/1";

// The one list of what a result file holds, in its order, for all that visit it. A visitor offers
//   v(name, value)                    a field; null for an optional that is empty
//   v.where_there(name, value)        an optional or a list that is left out if it is empty
//   v.measured(name, value, exists)   a number that is null where there was nothing to measure
//   v.group(name, fill)               an object that is no struct of the model
//   v.constant(name, text)            a text that is always the same
//   v.points(experiment)              an experiment's name and points

template <class Visitor>
void describe(Visitor& v, Is<Distribution> auto& d) {
  v("count", d.count);
  const bool any = d.count > 0;
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

template <class Visitor>
void describe(Visitor& v, Is<Outcomes> auto& outcomes) {
  v("acquired", outcomes.acquired);
  v("timed_out", outcomes.timed_out);
  v("refused", outcomes.refused);
  v("failed", outcomes.failed);
  v("unknown", outcomes.unknown);
  v("abandoned", outcomes.abandoned);
}

template <class Visitor>
void describe(Visitor& v, Is<WaitAnatomy> auto& wait) {
  v("round_trip_seconds", wait.round_trip_seconds);
  v("backoff_seconds", wait.backoff_seconds);
  v("notified_seconds", wait.notified_seconds);
}

template <class Visitor>
void describe(Visitor& v, Is<Fairness> auto& fairness) {
  v("jain", fairness.jain);
  v("longest_streak", fairness.longest_streak);
  v("longest_wait_seconds", fairness.longest_wait_seconds);
  v("per_client", fairness.per_client);
}

template <class Visitor>
void describe(Visitor& v, Is<Renewal> auto& renewal) {
  v("renewals", renewal.renewals);
  v("failures", renewal.failures);
  v("lost", renewal.lost);
  v("commands_per_second", renewal.commands_per_second);
  v("duration", renewal.duration);
  v("slip", renewal.slip);
  v("margin", renewal.margin);
}

template <class Visitor>
void describe(Visitor& v, Is<Quorum> auto& quorum) {
  v("nodes", quorum.nodes);
  v("votes", quorum.votes);
  v("split_votes", quorum.split_votes);
  v("rounds_per_grant", quorum.rounds_per_grant);
  v("node_seconds", quorum.node_seconds);
  v("validity", quorum.validity);
}

template <class Visitor>
void describe(Visitor& v, Is<Replication> auto& replication) {
  v("replicas", replication.replicas);
  v("refusals", replication.refusals);
  v("wait", replication.wait);
}

template <class Visitor>
void describe(Visitor& v, Is<Audit> auto& audit) {
  v("increments", audit.increments);
  v("counter", audit.counter);
  v("lost_updates", audit.lost_updates);
  v("lost_updates_max", audit.lost_updates_max);
  v("overlaps", audit.overlaps);
  v("overlap_seconds", audit.overlap_seconds);
  v("fence_regressions", audit.fence_regressions);
  v("stale_writes_rejected", audit.stale_writes_rejected);
  v("resource_failures", audit.resource_failures);
  v("verdict", audit.verdict);
}

template <class Visitor>
void describe(Visitor& v, Is<SeriesPoint> auto& point) {
  v("t", point.t);
  v("warmup", point.warmup);
  v("sections", point.sections);
  v("acquire_p50", point.acquire_p50);
  v("acquire_p99", point.acquire_p99);
  v("failed", point.failed);
  v("waiters", point.waiters);
  v("holders", point.holders);
}

template <class Visitor>
void describe(Visitor& v, Is<FaultMark> auto& mark) {
  v("fault", mark.fault);
  v("at_seconds", mark.at_seconds);
  v("healed_seconds", mark.healed_seconds);
  v("recovery_seconds", mark.recovery_seconds);
  v("lowest_share", mark.lowest_share);
}

template <class Visitor>
void describe(Visitor& v, Is<Generator> auto& generator) {
  v("cpu_seconds", generator.cpu_seconds);
  v("cpu_share", generator.cpu_share);
  v("valid", generator.valid);
  v("reasons", generator.reasons);
}

template <class Visitor>
void describe(Visitor& v, Is<Run> auto& run) {
  v("strategy", run.strategy);
  v("backend", run.backend);
  v("repetition", run.repetition);
  v("duration_seconds", run.duration_seconds);
  v("sections", run.sections);
  v("sections_per_second", run.sections_per_second);
  v("outcomes", run.outcomes);
  for (const auto& [name, member] : kRunCounts) v(name, run.*member);
  for (const auto& [name, member] : kRunDistributions) v(name, run.*member);
  v.group("releases", [&run](auto& releases) {
    releases("not_owner", run.releases_not_owner);
    releases("failed", run.releases_failed);
  });
  v("wait", run.wait);
  v("attempts_per_grant", run.attempts_per_grant);
  v("commands_per_section", run.commands_per_section);
  v("herd_factor", run.herd_factor);
  v("server_cpu_seconds_per_section", run.server_cpu_seconds_per_section);
  v("fairness", run.fairness);
  v("renewal", run.renewal);
  v("quorum", run.quorum);
  v("replication", run.replication);
  v("audit", run.audit);
  v("series", run.series);
  v("faults", run.faults);
  v("generator", run.generator);
  v("errors", run.errors);
}

template <class Visitor>
void describe(Visitor& v, Is<Server> auto& server) {
  v("version", server.version);
  v("endpoints", server.endpoints);
}

template <class Visitor>
void describe(Visitor& v, Is<Environment> auto& environment) {
  v("cpu", environment.cpu);
  v("cores", environment.cores);
  v("kernel", environment.kernel);
  v("memory_bytes", environment.memory_bytes);
  v("servers", environment.servers);
}

template <class Visitor>
void describe(Visitor& v, Is<Build> auto& build) {
  v("version", build.version);
  v("commit", build.commit);
  v("build_type", build.build_type);
}

template <class Visitor>
void describe(Visitor& v, Is<Skipped> auto& skipped) {
  v("strategy", skipped.strategy);
  v("reason", skipped.reason);
}

template <class Visitor>
void describe(Visitor& v, Is<RenewalPoint> auto& point) {
  v("strategy", point.strategy);
  v("held", point.held);
  v("mode", point.mode);
  v("threads", point.threads);
  v("server_cpu_share", point.server_cpu_share);
  v("renewals_per_second", point.renewals_per_second);
  v("commands_per_second", point.commands_per_second);
  v("sections_per_second", point.sections_per_second);
  v("baseline_sections_per_second", point.baseline_sections_per_second);
  v("overhead", point.overhead);
  v("failures", point.failures);
  v("lost", point.lost);
  v("margin", point.margin);
  v("slip", point.slip);
}

template <class Visitor>
void describe(Visitor& v, Is<QuorumPoint> auto& point) {
  v("strategy", point.strategy);
  v("nodes", point.nodes);
  v("down", point.down);
  v("frozen", point.frozen);
  v("slow", point.slow);
  v("slow_seconds", point.slow_seconds);
  v("clients", point.clients);
  v("sections_per_second", point.sections_per_second);
  v("acquire", point.acquire);
  v("commands_per_section", point.commands_per_section);
  v("split_votes", point.split_votes);
  v("rounds_per_grant", point.rounds_per_grant);
  v("granted_share", point.granted_share);
  v("validity", point.validity);
  v.where_there("violated", point.violated);
}

template <class Visitor>
void describe(Visitor& v, Is<DosePoint> auto& point) {
  v("scenario", point.scenario);
  v("strategy", point.strategy);
  v("ratio", point.ratio);
  v("ttl_seconds", point.ttl_seconds);
  v("plays", point.plays);
  v("violated", point.violated);
  v("violated_share", point.violated_share);
}

template <class Visitor>
void describe(Visitor& v, Is<Experiment> auto& experiment) {
  v.points(experiment);
}

template <class Visitor>
void describe(Visitor& v, Is<HazardEvent> auto& event) {
  v("t", event.t);
  v("who", event.who);
  v("what", event.what);
}

template <class Visitor>
void describe(Visitor& v, Is<Hazard> auto& hazard) {
  v("scenario", hazard.scenario);
  v("strategy", hazard.strategy);
  v("expected", hazard.expected);
  v("observed", hazard.observed);
  v("agrees", hazard.agrees);
  v("evidence", hazard.evidence);
  v("timeline", hazard.timeline);
}

template <class Visitor>
void describe(Visitor& v, Is<BeliefGap> auto& gap) {
  v("scenario", gap.scenario);
  v("strategy", gap.strategy);
  v("seconds", gap.seconds);
  v("p50", gap.p50);
  v("max", gap.max);
}

template <class Visitor>
void describe(Visitor& v, Is<Result> auto& result) {
  v.constant("schema", kSchema);
  v("id", result.id);
  v("started_at", result.started_at);
  v("interrupted", result.interrupted);
  v("lockbench", result.lockbench);
  v("environment", result.environment);
  v("workload", result.workload);
  v("skipped", result.skipped);
  v("runs", result.runs);
  v.where_there("hazards", result.hazards);
  v.where_there("belief_gaps", result.belief_gaps);
  v.where_there("experiment", result.experiment);
  v.where_there("capacity", result.capacity);
}

}  // namespace lockbench::results
