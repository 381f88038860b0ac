#pragma once

#include <string>
#include <tl/expected.hpp>

#include "loadgen/cluster/wire.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/share.h"

namespace lockbench::loadgen::cluster {

/// What every rank must know of a run. Has secrets, so it stays in memory.
struct Order {
  std::string run_id, strategy, load;
  int repetition = 1, number = 1;
  int ticket = 0;     ///< of this order among all, which every message about its run has
  Workload workload;  ///< of all ranks together
  Endpoints endpoints;
  std::string counter_url;
  Share::Split split = Share::Split::block;
  std::string metrics;   ///< where the rank serves its own; empty: nowhere
  int ranks_beside = 1;  ///< on the same host, the rank itself included; they share its cores
  /// Where each rank keeps what it has recorded, with ".rank-N" behind it; empty: nowhere.
  std::string partial_path;
  /// A result without runs, as JSON: what the file of a rank says beside its record.
  std::string heading;
};

/// The run as rank 0 plans it.
Order order_of(const RunPlan& plan, const Descriptor& strategy, const RunTurn& turn);

/// Of this order. The strategy is named in the order; the plan points into it.
RunPlan plan_of(const Order& order);

/// What a rank does of the workload: of limits on the number of sections, its part.
Workload part_of(const Workload& all, const Share& share);

template <class A>
void members(A& a, DurationDistribution::Quantile& q) {
  a(q.share, q.value);
}
template <class A>
void members(A& a, DurationDistribution& d) {
  d.parts([&a](auto&... part) { a(part...); });
}
template <class A>
void members(A& a, HotSet& h) {
  a(h.share, h.keys, h.moves_every);
}
template <class A>
void members(A& a, Trace& t) {
  a(t.path, t.repeats, t.keys, t.transactions);
}
template <class A>
void members(A& a, WaitPolicy& w) {
  a(w.kind, w.min, w.max);
}
template <class A>
void members(A& a, RenewPolicy& r) {
  a(r.kind, r.period);
}
template <class A>
void members(A& a, StrategyOptions& s) {
  a(s.wait, s.renew, s.renew_cap, s.prefer_writers, s.node_timeout, s.skip_failed_nodes,
    s.lock_delay, s.command_timeout, s.wait_replicas, s.wait_timeout, s.bounded_keys);
}
template <class A>
void members(A& a, Workload& w) {
  a(w.clients, w.clients_on, w.threads, w.stack_bytes, w.connections, w.keys, w.key_per_client,
    w.key_skew, w.hot_set, w.trace, w.shared_share, w.locks_per_section, w.lock_order,
    w.on_deadlock, w.deadlock_timeout, w.hold, w.think, w.meet_every, w.rate, w.arrival,
    w.longest_lag, w.duration, w.settles_after, w.iterations, w.warmup, w.ttl, w.acquire_timeout,
    w.resource, w.contended_grants, w.nodes, w.rtt, w.repeat, w.seed, w.strategy);
}
template <class A>
void members(A& a, Order& o) {
  a(o.run_id, o.strategy, o.load, o.repetition, o.number, o.ticket, o.workload, o.endpoints,
    o.counter_url, o.split, o.metrics, o.ranks_beside, o.partial_path, o.heading);
}

}  // namespace lockbench::loadgen::cluster
