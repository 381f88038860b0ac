#pragma once

#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

/// Every strategy of this build: controls first, then by backend and name.
std::vector<const Descriptor*> all_strategies();

/// The strategies that this build leaves out, in the same order.
std::vector<const Descriptor*> absent_strategies();

/// Null if this build has no strategy of that name.
const Descriptor* find_strategy(std::string_view name);

/// Registers a strategy when the program starts:
///   const Registration redis_mine(Descriptor{...});
class Registration {
 public:
  explicit Registration(Descriptor descriptor);
};

/// Registers the name of a strategy that this build leaves out.
class AbsentStrategy {
 public:
  AbsentStrategy(std::string_view name, std::string_view backend, std::string_view reason);
};

}  // namespace lockbench
