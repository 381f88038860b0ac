#pragma once

#include <string_view>

#include "loadgen/record/counter.h"
#include "strategies/lock_strategy.h"

namespace lockbench::hazards {

// What became of a request, as a timeline tells it of the client that made it.

std::string_view words(AcquireOutcome outcome);
std::string_view words(ReleaseOutcome outcome);
std::string_view words(RenewOutcome outcome);
std::string_view words(loadgen::WriteResult result);

}  // namespace lockbench::hazards
