#include <algorithm>
#include <fstream>
#include <iterator>

#include "cli/commands/commands.h"
#include "loadgen/cluster/part.h"
#include "results/file/json.h"
#include "results/file/save.h"

// The commands that only read files of results: show, report, merge.

namespace lockbench::cli {
namespace {

using loadgen::cluster::PartFile;
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

struct MergeOptions {
  static constexpr std::string_view kCommand = "merge";
  std::vector<std::string> files;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(
        options, files,
        "the files that the ranks of a run left, OUT.rank-N, and optionally its result file");
    options.only({"out", "report", "format", "columns", "quiet"}, [&] { output.declare(options); });
  }
  void complete(const OptionList& /*options*/) const {
    if (files.empty()) throw UsageError("merge needs files: lockbench merge FILE...");
    if (output.out.empty()) throw UsageError("merge needs --out FILE");
  }
};

struct Given {
  std::vector<PartFile> parts;
  std::optional<results::Result> result;  ///< with the earlier runs
};

Given read_all(const std::vector<std::string>& files) {
  Given given;
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UsageError("{}: cannot be read", path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (loadgen::cluster::is_part(text)) {
      given.parts.push_back(
          must(loadgen::cluster::read_part(text, build_line(build_facts())), path));
      continue;
    }
    results::Result result = must(results::load(path));
    if (given.result) throw UsageError("{}: a second result file; at most one is allowed", path);
    given.result = std::move(result);
  }
  if (given.parts.empty()) {
    throw UsageError("none of the files is from a rank (OUT.rank-N)");
  }
  return given;
}

/// Adds the run of the ranks' files to the result, unless it is there: rank 0's record of it also
/// covers the servers.
results::Result put_together(Given given) {
  results::Result heading =
      must(results::from_json(given.parts.front().order.heading), "a rank's file has no heading");
  results::Run run = must(loadgen::cluster::merge(given.parts));
  if (given.result && given.result->id != heading.id) {
    throw UsageError("the result file is from {}, but the ranks' files are from {}",
                     given.result->id, heading.id);
  }
  results::Result result = given.result ? *std::move(given.result) : std::move(heading);
  if (std::ranges::any_of(run.ranks, &results::Rank::lost)) result.exit_code = exit_code::kErrors;
  const bool there = std::ranges::any_of(result.runs, [&](const results::Run& other) {
    return other.strategy == run.strategy && other.repetition == run.repetition &&
           other.load == run.load;
  });
  if (!there) result.runs.push_back(std::move(run));
  return result;
}

int merge(const MergeOptions& options) {
  results::Result result = put_together(read_all(options.files));
  const std::string out = out_path(options.output, result);
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  ResultFile file(out, console);
  const int saved = finish(result, options.output, file, cli::ending_of(result));
  // The exit code that the file records wins.
  return result.exit_code ? static_cast<int>(*result.exit_code) : saved;
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

Command merge_command() {
  return make_command<MergeOptions>(
      {.task = kCompareResults,
       .summary = "Merge the files that the ranks of an interrupted MPI run saved.",
       .example = "lockbench merge out.json.rank-* --out merged.json"},
      merge);
}

}  // namespace lockbench::cli
