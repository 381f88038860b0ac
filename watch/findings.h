#pragma once

#include <string_view>
#include <vector>

#include "watch/picture.h"

namespace lockbench::watch {

/// "expired", "no_ttl": as the result file and metrics name it.
std::string_view name_of(Finding::Kind kind);

/// What follows from a picture's sources, families and worst locks, what hurts most first. One
/// finding for each kind and family.
std::vector<Finding> findings_of(const Picture& picture);

}  // namespace lockbench::watch
