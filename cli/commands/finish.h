#pragma once

#include <chrono>
#include <string>
#include <tl/expected.hpp>

#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/options/load_options.h"
#include "strategies/duration.h"

namespace lockbench::cli {

// The beginning and the end of every command that saves a result.

/// A result with its id and time, this build and this machine.
results::Result begin_result(WallTime now = std::chrono::system_clock::now());

/// The path of the result file. An error if it cannot be written, or the page of --report cannot,
/// or if such a result has no column that --columns names. `result` is still empty.
tl::expected<std::string, UsageError> out_path(const OutputOptions& options,
                                               const results::Result& result);

/// Saves the result to `out`, and as a page to `page` unless that is empty, and prints `text`.
/// Returns the exit code.
int finish(const results::Result& result, const std::string& text, const std::string& out,
           Ending ending, Console& console, const std::string& page = "");

}  // namespace lockbench::cli
