#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"

namespace lockbench::test {

/// Thrown with the defect of a lock.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One promise of the strategy interface or of a descriptor, with its check.
struct Property {
  std::string_view name;
  bool (*applies)(const Descriptor& descriptor);
  /// The defect; empty if the promise is kept. May throw it as Broken instead. Throws another
  /// std::runtime_error if no server is available.
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
/// Properties of the tested store only.
std::vector<Property> own_properties();

/// Of controls that take no lock; none of the others are theirs.
std::vector<Property> update_properties();

/// Throws std::out_of_range for an unknown name.
Property find_property(std::string_view name);

// By topic; each in its own file.
std::vector<Property> exclusion_properties();
std::vector<Property> waiting_properties();
std::vector<Property> leftover_properties();
std::vector<Property> expiry_properties();
std::vector<Property> command_properties();
std::vector<Property> failure_properties();

}  // namespace lockbench::test
