#pragma once

#include <string>
#include <vector>

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "cli/options/select.h"
#include "results/file/model.h"
#include "results/tables/show.h"

namespace lockbench::cli {

/// What each strategy of the result's runs is known to fall to, in a word: its gravest hazard.
results::KnownFlaws known_flaws(const results::Result& result);

/// How stdout shows a result: with colors, width and UTF-8 as it can take them.
results::Look look_of(const OutputOptions& options);

/// The result as stdout shows it. out_path() has checked the columns.
std::string render(const results::Result& result, const OutputOptions& options);

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
