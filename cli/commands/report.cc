#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/report_page.h"
#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/options/option_types.h"
#include "cli/options/result_files.h"
#include "results/file/load.h"
#include "results/file/save.h"

namespace lockbench::cli {
namespace {

namespace fs = std::filesystem;
using results::report::kMostFiles;

std::vector<Option> options_of_report() {
  std::vector<Option> options = {
      result_files_option(
          fmt::format("result files, at most {}: each has its part of the page", kMostFiles),
          [](auto& o) -> auto& { return o.report.files; }),
      path_option(
          "out", "where the page goes (report.html)", [](auto& o) -> auto& { return o.out; })};
  auto shared = some_run_options({"quiet"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

tl::expected<void, UsageError> check_out(const std::string& out,
                                         const std::vector<std::string>& files) {
  std::error_code ignored;
  for (const std::string& file : files) {
    if (fs::equivalent(file, out, ignored)) {
      return tl::unexpected(UsageError{
          fmt::format("--out: {} is one of the results: the page would replace it", out)});
    }
  }
  if (auto writable = results::check_writable(out); !writable) {
    return tl::unexpected(UsageError{fmt::format("--out: {}", writable.error())});
  }
  return {};
}

tl::expected<int, UsageError> report(const RunOptions& options) {
  const std::vector<std::string>& files = options.report.files;
  if (files.empty() || files.size() > kMostFiles) {
    return tl::unexpected(UsageError{
        fmt::format("1 to {} result files are wanted: lockbench report FILE... (given: {})",
                    kMostFiles, files.size())});
  }
  const std::string out = options.out.empty() ? "report.html" : options.out;
  std::vector<results::report::Source> sources;
  for (const std::string& file : files) {
    auto result = results::load(file);
    if (!result) return tl::unexpected(UsageError{result.error()});
    sources.push_back(report_source(std::move(*result), file));
  }
  if (auto fits = check_out(out, files); !fits) return tl::unexpected(fits.error());
  Console console(stderr, is_terminal(stderr), options.quiet);
  const bool saved = save_page(results::report::make_view(sources), out, console);
  return exit_code_of({.errors = !saved});
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Results as one page for browsers, which needs no network.",
          .options = options_of_report(),
          .execute = report};
}

}  // namespace lockbench::cli
