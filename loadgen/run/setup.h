#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "loadgen/run/runner.h"
#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

// What a run is made of before its clients start, in whichever process they are.

/// For so many nodes of a quorum a recorder keeps votes; 0 for a lock without one.
int nodes_of_quorum(const Descriptor& strategy, const Endpoints& endpoints);

/// `number`: of the run, among those of its plans. All must outlive it.
RunShared make_run(const RunPlan& plan, const Descriptor& strategy, int repetition, int number,
                   const Share& share, Env& env);

/// Makes the services that a run's clients share report to its recorder: their commands, renewals,
/// votes and waits for replicas. Each counts for the phase in which it happens. `run` must outlive
/// the services.
void record_services(RunShared& run);

/// What its clients share beside that: what the strategy's services need, a canary's meetings, the
/// demand, and the counters. `env` belongs to the calling thread and outlives the run.
tl::expected<void, std::string> equip(const RunPlan& plan, Env& env, RunShared& run);

}  // namespace lockbench::loadgen
