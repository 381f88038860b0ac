#pragma once

#include "tests/conformance/common/properties.h"

namespace lockbench::test {

std::vector<Property> redis_properties();

// Also of locks on a server with replicas; each in a file of its own.
std::vector<Property> renewal_properties();
std::vector<Property> notification_properties();

}  // namespace lockbench::test
