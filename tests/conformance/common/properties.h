#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// What is wrong with a lock.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One promise of the strategy interface or of a descriptor, and the check that finds it broken.
struct Property {
  std::string_view name;
  bool (*applies)(const Descriptor& descriptor);
  /// What is wrong; empty if the promise is kept. May throw it as Broken instead. Throws another
  /// std::runtime_error where no server can be had.
  std::string (*check)(const Descriptor& descriptor);

  std::string complaint(const Descriptor& descriptor) const {
    try {
      return check(descriptor);
    } catch (const Broken& broken) {
      return broken.what();
    }
  }
};

inline bool always(const Descriptor& /*descriptor*/) { return true; }
inline bool excludes(const Descriptor& descriptor) { return descriptor.traits.promises_exclusion; }
inline bool is_fair(const Descriptor& descriptor) { return descriptor.traits.fair; }

std::vector<Property> all_properties();
/// What is checked of the tested store alone.
std::vector<Property> own_properties();

/// Throws std::out_of_range for a name that is none.
Property find_property(std::string_view name);

// By what they are about; each in a file of its own.
std::vector<Property> exclusion_properties();
std::vector<Property> waiting_properties();
std::vector<Property> leftover_properties();
std::vector<Property> expiry_properties();
std::vector<Property> command_properties();
std::vector<Property> failure_properties();

}  // namespace lockbench::test
