#pragma once

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

/// Makes the services that a run's clients share report to its recorder: their commands, renewals,
/// votes and waits for replicas. Each counts for the phase in which it happens. `run` must outlive
/// the services.
void record_services(RunShared& run);

}  // namespace lockbench::loadgen
