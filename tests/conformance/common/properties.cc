#include "tests/conformance/common/properties.h"

#include <stdexcept>

#include "tests/conformance/common/test_store.h"

namespace lockbench::test {

std::vector<Property> all_properties() {
  std::vector<Property> all;
  for (const auto& group :
       {exclusion_properties(), waiting_properties(), ownership_properties(), leftover_properties(),
        queue_properties(), sharing_properties(), expiry_properties(), command_properties(),
        lost_command_properties(), failure_properties(), own_properties()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::vector<Property> own_properties() {
  const auto properties = tested_store().properties;
  return properties == nullptr ? std::vector<Property>{} : properties();
}

Property find_property(std::string_view name) {
  for (const Property& property : all_properties()) {
    if (property.name == name) return property;
  }
  throw std::out_of_range("no such property: " + std::string(name));
}

}  // namespace lockbench::test
