#pragma once

#include <optional>
#include <string>

#include "cli/console/console.h"
#include "cli/console/publish.h"
#include "cli/options/load_options.h"
#include "results/report/report.h"

namespace lockbench::cli {

// The beginning and the end of every command that saves a result.

/// A result with its id and time, the command, this build and this machine.
results::Result begin_result(const OutputOptions& options);

/// The path of the result file. A UsageError if it cannot be written, or the page of --report
/// cannot, or if such a result has no column that --columns names. `result` is still empty.
std::string out_path(const OutputOptions& options, const results::Result& result);

/// Saves the result, and as a page if --report asks for one, and shows it: `text`, or without one
/// as the options say. Returns the exit code. What may take long or fail, such as a push, comes
/// before, and after a keep().
int finish(const results::Result& result, const OutputOptions& options, ResultFile& file,
           Ending ending, const std::optional<std::string>& text = {});

/// A result as part of a report, with the known flaws of its strategies. `file` is its path.
results::report::Source report_source(results::Result result, const std::string& file);

/// Whether both paths lead to the same file, so that what is written to one replaces the other's.
/// False for /dev/null, which loses both.
bool same_file(const std::string& one, const std::string& other);

/// For before the load: a UsageError if --report is given and cannot be written, or is `out`.
void check_report(const std::string& page, const std::string& out);

/// Writes the result as a page, unless `page` is empty, and says where. False if it could not be
/// written there. `out` is the path of the result file.
bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console);

/// Likewise for the page of any results.
bool save_page(const std::string& page, const std::string& path, Console& console);

}  // namespace lockbench::cli
