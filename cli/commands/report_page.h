#pragma once

#include <string>
#include <tl/expected.hpp>

#include "cli/console/console.h"
#include "cli/options/options.h"
#include "results/file/model.h"
#include "results/report/report.h"

namespace lockbench::cli {

/// A result as a report takes it, with what this build knows of it. `file`: where it stands.
results::report::Source report_source(results::Result result, const std::string& file);

/// To be asked before a load: whether --report, if it is given, can be written, and is not `out`.
tl::expected<void, UsageError> check_report(const RunOptions& options, const std::string& out);

/// Writes the result as a page, if `page` is not empty, and says where. False if it is not where it
/// was to be. `out`: where the result was saved.
bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console);

/// Likewise, of any view.
bool save_page(const results::report::View& view, const std::string& path, Console& console);

}  // namespace lockbench::cli
