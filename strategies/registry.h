#pragma once

#include <string_view>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/named.h"

namespace lockbench {

/// Every strategy of this build: controls first, then by backend and name.
std::vector<const Descriptor*> all_strategies();

/// The strategies that this build leaves out, in the same order.
std::vector<const Descriptor*> absent_strategies();

/// Null if this build has no strategy of that name.
const Descriptor* find_strategy(std::string_view name);

/// Registers a strategy when the program starts:
///   const Registration redis_mine(Descriptor{...});
using Registration = Named<Descriptor>;

}  // namespace lockbench
