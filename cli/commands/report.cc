#include <fmt/format.h>

#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/finish.h"
#include "cli/console/console.h"
#include "cli/console/publish.h"
#include "cli/options/value_types.h"
#include "results/file/json.h"
#include "results/file/save.h"

namespace lockbench::cli {
namespace {

using results::report::kMostFiles;

struct ReportOptions {
  static constexpr std::string_view kCommand = "report";
  std::vector<std::string> files;
  std::string out = "report.html";
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(
        options, files,
        fmt::format("result files, at most {}; each becomes a part of the page", kMostFiles));
    options.add("out", "FILE", out, path(), "the page; -: stdout");
    options.only({"quiet"}, [&] { output.declare(options); });
  }
};

void check_out(const std::string& out, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (same_file(file, out)) {
      throw UsageError("--out: {} is one of the results: the page would replace it", out);
    }
  }
  must(results::check_writable(out), "--out");
}

int report(const ReportOptions& options) {
  const std::vector<std::string>& files = options.files;
  if (files.empty() || files.size() > kMostFiles) {
    throw UsageError("expected 1 to {} result files: lockbench report FILE... (given: {})",
                     kMostFiles, files.size());
  }
  const std::string& out = options.out;
  std::vector<results::report::Source> sources;
  sources.reserve(files.size());
  for (const std::string& file : files) {
    sources.push_back(report_source(must(results::load(file)), file));
  }
  if (out != kStdout) check_out(out, files);
  const std::string page = results::report::to_page(sources, results::report::make_nonce());
  if (out == kStdout) return exit_code_of({.errors = !print_text(page)});
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  return exit_code_of({.errors = !save_page(page, out, console)});
}

}  // namespace

Command report_command() {
  return make_command<ReportOptions>(
      {.task = kCompareResults,
       .summary = "Show result files as one HTML page, which needs no network.",
       .example = "lockbench report results/runs/*.json --out report.html"},
      report);
}

}  // namespace lockbench::cli
