#pragma once

#include <vector>

#include "cli/options/load_options.h"
#include "cli/options/select.h"

namespace lockbench::cli {

/// Puts the selected strategies under the loads of the options, saves and shows the result. Returns
/// the exit code.
tl::expected<int, UsageError> measure(const RunOptions& options, std::vector<Selected> selected);

}  // namespace lockbench::cli
