#pragma once

#include <vector>

#include "choose/evidence.h"

namespace lockbench::choose {

/// The results in results/reference, as they were when lockbench was built. A file among them that
/// cannot be read is a mistake of the build's, and throws std::runtime_error.
std::vector<Source> reference();

}  // namespace lockbench::choose
