#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "simulate/simulation.h"
#include "strategies/registry.h"
#include "tests/support/must.h"

namespace lockbench::simulate {

using namespace std::chrono_literals;

/// Ten clients that share one lock, for a minute of simulated time.
inline Plan plan_for(std::string_view strategy) {
  Plan plan{.strategy = find_strategy(strategy)};
  plan.workload.clients = 10;
  plan.workload.hold = loadgen::DurationDistribution::constant(20ms);
  plan.workload.think = loadgen::DurationDistribution::exponential(200ms);
  plan.workload.duration = 1min;
  plan.workload.ttl = 2s;
  if (plan.strategy->traits.needs_replicas) {
    plan.redis.replicas = 2;
    plan.workload.strategy.wait_replicas = 2;
  }
  return plan;
}

inline Faults faults(const std::string& lines) {
  std::istringstream file(lines);
  return test::must(Faults::read(file, "faults"));
}

/// Of every kind, often.
inline Faults every_fault() {
  return faults(
      "store-kill 2/m 2s\nstore-freeze 2/m 500ms\nfailover 2/m 1s\npartition:0.3 2/m exp(1s)\n"
      "partition-to:0.3 2/m 1s\npartition-from:0.3 2/m 1s\ndelay:20ms 2/m 1s\n"
      "client-pause 6/m exp(2s)\nclient-kill 6/m 1s\nclock-step:3s 1/m\nclient-clock-step:-1s 1/m\n"
      "eviction 2/m\nloss:0.01\nclock-drift:200\nclock-offset:20ms\n");
}

/// The names of all that can be simulated.
inline std::vector<std::string> simulated() {
  std::vector<std::string> names;
  for (const Descriptor* strategy : all_strategies()) {
    if (why_not(*strategy).empty()) names.emplace_back(strategy->name);
  }
  return names;
}

struct Played {
  Outcome outcome;
  std::string trace;
};

inline Played played(Plan plan, std::uint64_t seed = 1) {
  Played all;
  plan.trace = [&](const std::string& line) { all.trace += line + "\n"; };
  all.outcome = test::must(simulate(plan, seed));
  return all;
}

}  // namespace lockbench::simulate
