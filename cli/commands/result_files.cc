#include <algorithm>

#include "cli/commands/commands.h"
#include "results/file/json.h"
#include "results/file/save.h"

// The commands that only read files of results: show, report.

namespace lockbench::cli {
namespace {

using results::report::kMostFiles;

struct ShowOptions {
  static constexpr std::string_view kCommand = "show";
  std::vector<std::string> files;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(options, files, "one result file of any command");
    options.only({"format", "columns"}, [&] { output.declare(options); });
  }
};

int show(const ShowOptions& options) {
  if (options.files.size() != 1) {
    throw UsageError("show takes one result file: lockbench show FILE");
  }
  const results::Result result = must(results::load(options.files.front()));
  const auto text = results::render(result, known_flaws(result), look_of(options.output));
  return print_text(must(text, "--columns")) ? exit_code::kFine : exit_code::kErrors;
}

struct ReportOptions {
  static constexpr std::string_view kCommand = "report";
  std::vector<std::string> files;
  std::string out = "report.html";
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(
        options, files,
        fmt::format("at most {} result files; each becomes a part of the page", kMostFiles));
    options.add("out", "FILE", out, path(), "the page; -: stdout");
    options.only({"quiet"}, [&] { output.declare(options); });
  }
};

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
    results::Result result = must(results::load(file));
    results::KnownFlaws flaws = known_flaws(result);
    sources.push_back({file, std::move(result), std::move(flaws)});
  }
  const auto page = [&] { return to_page(sources, results::report::make_nonce()); };
  if (out == kStdout) return exit_code_of({.errors = !print_text(page())});
  if (std::ranges::any_of(files, [&](const auto& file) { return same_file(file, out); })) {
    throw UsageError("--out: {} is one of the results: the page would replace it", out);
  }
  must(results::check_writable(out), "--out");
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  return exit_code_of({.errors = !save_page(page(), out, console)});
}

}  // namespace

Command show_command() {
  return make_command<ShowOptions>(
      {.task = kCompareResults,
       .summary = "Show a result file as a table, Markdown, CSV or JSON.",
       .example = "lockbench show results/runs/ID.json --columns strategy,acquire_p99_seconds"},
      show);
}

Command report_command() {
  return make_command<ReportOptions>(
      {.task = kCompareResults,
       .summary = "Write result files as one self-contained HTML page.",
       .example = "lockbench report results/runs/*.json --out report.html"},
      report);
}

}  // namespace lockbench::cli
