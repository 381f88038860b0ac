#pragma once

#include "choose/qualify.h"

namespace lockbench::choose {

/// Whether one lock can carry the required load with any strategy.
void check_demand(Candidate& candidate, const Requirements& requirements);

/// Checks the objective against what was measured and against what no lock can change. A
/// measurement under another load proves nothing, unless a lighter load already misses the
/// objective.
void check_slo(Candidate& candidate, const results::Threshold& slo,
               const Requirements& requirements, const Evidence& evidence);

}  // namespace lockbench::choose
