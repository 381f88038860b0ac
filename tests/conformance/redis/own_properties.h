#pragma once

#include "tests/conformance/common/properties.h"

namespace lockbench::test {

bool uses_redis(const Descriptor& descriptor);

std::vector<Property> redis_properties();

// By what they are about; each in a file of its own.
std::vector<Property> renewal_properties();
std::vector<Property> notification_properties();
std::vector<Property> script_properties();
std::vector<Property> endpoint_properties();

}  // namespace lockbench::test
