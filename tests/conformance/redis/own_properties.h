#pragma once

#include "tests/conformance/common/properties.h"

namespace lockbench::test {

std::vector<Property> redis_properties();

/// Of renewal and notification: also of locks on a server with replicas.
std::vector<Property> service_properties();

}  // namespace lockbench::test
