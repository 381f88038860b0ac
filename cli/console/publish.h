#pragma once

#include <string>
#include <vector>

#include "cli/options/load_options.h"
#include "cli/options/select.h"
#include "results/file/model.h"
#include "results/tables/show.h"

namespace lockbench::cli {

/// Of each strategy in the result's runs.
results::KnownFlaws known_flaws(const results::Result& result);

/// How stdout shows a result: colors, width and UTF-8 as far as it supports them.
results::Look look_of(const OutputOptions& options);

/// The result as stdout shows it. out_path() has checked the columns.
std::string render(const results::Result& result, const OutputOptions& options);

/// To stdout; to a terminal without control characters but our own. False, with a message on
/// stderr, if that failed. A console's status line must be empty.
bool print_text(const std::string& given);

/// One line for each run that missed a threshold, with what was measured. Controls are exempt
/// unless they were named.
std::vector<std::string> missed_thresholds(const std::vector<results::Threshold>& thresholds,
                                           const results::Result& result,
                                           const std::vector<Selected>& selected);

}  // namespace lockbench::cli
