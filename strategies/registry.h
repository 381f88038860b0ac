#pragma once

#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench {

/// Every strategy of this build: controls first, then by backend and name.
std::vector<const Descriptor*> all_strategies();

/// Null if there is none of that name.
const Descriptor* find_strategy(std::string_view name);

/// Puts a strategy into the registry when the program starts:
///   const Registration registration(Descriptor{...});
class Registration {
 public:
  explicit Registration(Descriptor descriptor);
};

}  // namespace lockbench
