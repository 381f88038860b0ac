#pragma once

#include <string>
#include <vector>

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "cli/options/select.h"
#include "results/file/model.h"
#include "results/tables/table.h"

namespace lockbench::cli {

/// What each strategy of the result's runs is known to fall to, in a word: its gravest hazard.
results::KnownFlaws known_flaws(const results::Result& result);

/// The result in the chosen format, as stdout gets it; `look` is for the console's table.
std::string render(const results::Result& result, Format format, const results::TableOptions& look);

/// Writes the result file and says where. False if it is not where it was to be.
bool save_result(const results::Result& result, const std::string& path, Console& console);

/// To stdout. False if that failed, which the console is told.
bool print_text(const std::string& text, Console& console);

/// One line for each run that missed a threshold, with what was measured. Controls are exempt
/// unless they were named.
std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const std::vector<results::Run>& runs,
                                           const std::vector<Selected>& selected);

}  // namespace lockbench::cli
