#pragma once

#include "choose/qualify.h"

namespace lockbench::choose {

/// Whether one lock can carry what is asked of it at all, whatever the strategy.
void check_demand(Candidate& candidate, const Requirements& requirements);

/// Holds what was measured against the objective, and what no lock can change. What was measured
/// under another load than the one that was asked for proves nothing, unless it is missed already
/// under a lighter one.
void check_slo(Candidate& candidate, const results::Threshold& slo,
               const Requirements& requirements, const Evidence& evidence);

}  // namespace lockbench::choose
