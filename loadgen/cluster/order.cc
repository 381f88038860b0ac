#include "loadgen/cluster/order.h"

#include <algorithm>
#include <thread>

namespace lockbench::loadgen::cluster {

Order order_of(const RunPlan& plan, const Descriptor& strategy, int repetition, int number) {
  return {.run_id = plan.run_id,
          .strategy = std::string(strategy.name),
          .repetition = repetition,
          .number = number,
          .workload = plan.workload,
          .endpoints = plan.endpoints,
          .counter_url = plan.counter_url,
          .metrics = {},
          .push = {},
          .part_path = {},
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

Workload part_of(const Workload& all, const Share& share, int ranks_beside) {
  Workload part = all;
  if (part.iterations) part.iterations = share.part_of(*all.iterations);
  if (part.trace) {
    part.trace->transactions = share.part_of(all.trace->transactions);
  }
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  part.threads = std::clamp(all.threads.value_or(cores / std::max(1, ranks_beside)), 1,
                            std::max(1, share.count()));
  return part;
}

}  // namespace lockbench::loadgen::cluster
