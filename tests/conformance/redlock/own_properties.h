#pragma once

#include "tests/conformance/common/properties.h"

namespace lockbench::test {

// What only a lock on several independent servers promises; each in a file of its own.
/// Majorities, validity, and what becomes of votes that were for nothing.
std::vector<Property> vote_properties();
/// Nodes that are dead, frozen or slow.
std::vector<Property> outage_properties();

}  // namespace lockbench::test
