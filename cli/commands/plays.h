#pragma once

#include "hazards/player.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// A cell of the hazard matrix as the result file has it. It has been played.
results::Hazard to_result(const hazards::Repeated& repeated);

}  // namespace lockbench::cli
