#include <fstream>
#include <iterator>

#include "cli/commands/commands.h"
#include "cli/console/exit_code.h"
#include "cli/console/publish.h"
#include "results/file/condense.h"
#include "results/file/load.h"
#include "results/tables/reference_tables.h"

// Commands of scripts/reference.sh and scripts/reference_tables.sh, which `lockbench --help` does
// not list.

namespace lockbench::cli {
namespace {

struct FileOptions {
  static constexpr Commands kCommand = kEveryCommand;
  std::vector<std::string> files;
  void declare(OptionList& options) { declare_files(options, files, "the files"); }
};

int print(const std::string& text) {
  return print_text(text) ? exit_code::kFine : exit_code::kErrors;
}

int condense(const FileOptions& options) {
  const auto& files = options.files;
  if (files.size() != 1) {
    throw UsageError("condense takes one result file: lockbench condense FILE > SMALL.json");
  }
  return print(results::condensed(must(results::load(files.front()))));
}

int reference_tables(const FileOptions& options) {
  const auto& files = options.files;
  if (files.size() < 2) {
    throw UsageError(
        "reference-tables takes a Markdown page and result files: lockbench reference-tables "
        "PAGE.md RESULT.json...");
  }
  std::ifstream page(files.front(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  if (!page.is_open() || page.bad()) throw UsageError("{}: cannot be read", files.front());
  std::vector<results::Result> sources;
  results::KnownFlaws flaws;
  for (std::size_t i = 1; i < files.size(); ++i) {
    sources.push_back(must(results::load(files[i])));
    flaws.merge(known_flaws(sources.back()));
  }
  const auto updated = results::with_tables(text, results::reference_tables(sources, flaws));
  return print(must(updated, files.front()));
}

}  // namespace

Command condense_command() {
  return make_command<FileOptions>(
      {.name = "condense",
       .summary = "Print a result file without histograms, time series and timelines.",
       .example = "lockbench condense FILE > SMALL.json"},
      condense);
}

Command reference_tables_command() {
  return make_command<FileOptions>(
      {.name = "reference-tables",
       .summary = "Print a Markdown page with its reference tables updated from result files.",
       .example = "lockbench reference-tables PAGE.md RESULT.json..."},
      reference_tables);
}

}  // namespace lockbench::cli
