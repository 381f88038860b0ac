#pragma once

#include <string>
#include <tl/expected.hpp>

#include "cli/console/console.h"
#include "cli/options/load_options.h"
#include "results/file/model.h"
#include "results/report/report.h"

namespace lockbench::cli {

/// A result as part of a report, with the command that repeats it and the known flaws of its
/// strategies. `file` is its path.
results::report::Source report_source(results::Result result, const std::string& file);

/// For before the load: whether --report, if given, can be written and is another file than `out`.
tl::expected<void, UsageError> check_report(const std::string& page, const std::string& out);

/// Writes the result as a page, unless `page` is empty, and says where. False if it could not be
/// written there. `out` is the path of the result file.
bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console);

/// Likewise for any view.
bool save_page(const results::report::View& view, const std::string& path, Console& console);

}  // namespace lockbench::cli
