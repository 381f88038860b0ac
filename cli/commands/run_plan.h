#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "deployment/deployment.h"
#include "loadgen/run/runner.h"

namespace lockbench::cli {

/// Of runs on these servers, which must outlive it. The caller sets the workload and the rest.
inline loadgen::RunPlan plan_on(const deployment::Deployment& servers, std::string run_id) {
  loadgen::RunPlan plan;
  plan.run_id = std::move(run_id);
  plan.endpoints = servers.endpoints;
  plan.counter_url = servers.counter_url;
  plan.private_cpu.of = [&servers](std::string_view set) { return servers.cpu_seconds_of(set); };
  plan.private_cpu.all = [&servers] { return servers.cpu_seconds(); };
  plan.warms_up = [&servers](const Descriptor& strategy) { return servers.warms_up(strategy); };
  return plan;
}

}  // namespace lockbench::cli
