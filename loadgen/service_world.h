#pragma once

#include "loadgen/worker.h"

namespace lockbench {

/// Puts what the services of a run need into place: worlds whose commands are counted, and somebody
/// who is told of renewals. `run` must outlive them.
void provide_service_worlds(RunShared& run);

}  // namespace lockbench
