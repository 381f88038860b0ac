#pragma once

#include <functional>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/select.h"
#include "results/file/model.h"

namespace lockbench::cli {

/// Takes the strategies that `concerns` out of the plan, from `selected` to `skipped`; an error if
/// one of them was named, or if nothing is left to run.
tl::expected<void, UsageError> skip(const std::function<bool(const Descriptor&)>& concerns,
                                    std::string_view reason, std::vector<Selected>& selected,
                                    std::vector<results::Skipped>& skipped);

/// Those that this build leaves out, that have no shared mode if one is asked for, or whose servers
/// cannot have one of the faults.
tl::expected<void, UsageError> skip_unable(const RunOptions& options,
                                           std::vector<Selected>& selected,
                                           std::vector<results::Skipped>& skipped);

}  // namespace lockbench::cli
