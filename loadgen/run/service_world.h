#pragma once

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

/// Puts what the services of a run need into place: worlds whose commands are counted, and somebody
/// who is told of renewals, of votes and of replicas. All are measured from the end of the warm-up
/// to the end of the load, by the time at which they happen. `run` must outlive the services.
void provide_service_worlds(RunShared& run);

}  // namespace lockbench::loadgen
