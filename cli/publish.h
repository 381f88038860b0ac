#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/select.h"
#include "results/model.h"
#include "results/table.h"

namespace lockbench {

/// The result in the chosen format, as stdout gets it; `look` is for the console's table.
std::string render(const results::Result& result, Format format, const results::TableOptions& look);

/// One line for each run that missed a threshold, with what was measured. Controls are exempt
/// unless they were named.
std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const std::vector<results::Run>& runs,
                                           const std::vector<Selected>& selected);

}  // namespace lockbench
