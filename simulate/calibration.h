#pragma once

#include <string>
#include <tl/expected.hpp>

#include "simulate/simulation.h"

namespace lockbench::simulate {

/// The times of the machine on which `measured` was made, for the plan's strategy: those with which
/// it is simulated as it was measured under the load `alone`, in the medians and 99th percentiles
/// of its acquisitions and releases, and in the CPU time of its servers if that was measured. Takes
/// the runs with the plan's round-trip time, or else those without one. Plays a few short
/// simulations. The error says what the result lacks.
tl::expected<Calibration, std::string> calibrate(const Plan& plan, const results::Result& measured);

}  // namespace lockbench::simulate
