#include "loadgen/cluster/order.h"

namespace lockbench::loadgen::cluster {

Order order_of(const RunPlan& plan, const Descriptor& strategy, const RunTurn& turn) {
  return {.run_id = plan.run_id,
          .strategy = std::string(strategy.name),
          .repetition = turn.repetition,
          .number = turn.number,
          .workload = plan.workload,
          .endpoints = plan.endpoints,
          .counter_url = plan.counter_url,
          .partial_path = {},
          .heading = {}};
}

RunPlan plan_of(const Order& order) {
  RunPlan plan;
  plan.run_id = order.run_id;
  plan.workload = order.workload;
  plan.endpoints = order.endpoints;
  plan.counter_url = order.counter_url;
  return plan;
}

Workload part_of(const Workload& all, const Share& share) {
  Workload part = all;
  if (part.iterations) part.iterations = share.part_of(*all.iterations);
  if (part.trace && !part.trace->repeats) {
    part.trace->transactions = share.part_of(all.trace->transactions);
  }
  return part;
}

}  // namespace lockbench::loadgen::cluster
