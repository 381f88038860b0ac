#pragma once

#include <chrono>
#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/options/option.h"
#include "strategies/duration.h"

namespace lockbench::cli {

// What subcommands do around what they measure: from the result's first lines to the exit code.

/// A result that says what is known beforehand: its id and time, this build, this machine.
results::Result begin_result(WallTime now = std::chrono::system_clock::now());

/// Where the result file goes. An error if it could not be written there, or the page of --report
/// not where that goes.
tl::expected<std::string, UsageError> out_path(const RunOptions& options, const std::string& id);

/// workload_record(), with the values of a subcommand's own options.
std::map<std::string, results::OptionValue> record_of(const RunOptions& options,
                                                      const std::vector<Option>& own);

/// An experiment's points and what they say, as stdout gets them.
std::string experiment_text(const results::Result& result, Format format);

/// Saves the result, also as a page if `page` says where, and prints `text`. The exit code.
int finish(const results::Result& result, const std::string& text, const std::string& out,
           Ending ending, Console& console, const std::string& page = "");

}  // namespace lockbench::cli
