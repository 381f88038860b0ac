#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// One promise of the strategy interface or of a descriptor, and the check that finds it broken.
struct Property {
  std::string_view name;
  bool (*applies)(const Descriptor& descriptor);
  /// What is wrong; empty if the promise is kept. Throws std::runtime_error where no server can be
  /// had.
  std::string (*check)(const Descriptor& descriptor);
};

inline bool excludes(const Descriptor& descriptor) { return descriptor.traits.promises_exclusion; }

std::vector<Property> all_properties();
/// What is checked of the tested store alone.
std::vector<Property> own_properties();

/// Throws std::out_of_range for a name that is none.
Property find_property(std::string_view name);

// By what they are about; each in a file of its own.
std::vector<Property> exclusion_properties();
std::vector<Property> waiting_properties();
std::vector<Property> ownership_properties();
std::vector<Property> leftover_properties();
std::vector<Property> queue_properties();
std::vector<Property> sharing_properties();
std::vector<Property> expiry_properties();
std::vector<Property> command_properties();
std::vector<Property> lost_command_properties();
std::vector<Property> failure_properties();

}  // namespace lockbench::test
