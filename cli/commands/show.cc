#include "cli/commands/commands.h"
#include "cli/console/publish.h"
#include "results/file/json.h"

namespace lockbench::cli {
namespace {

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

}  // namespace

Command show_command() {
  return make_command<ShowOptions>(
      {.task = kCompareResults,
       .summary = "Show a result file as a table, Markdown, CSV or JSON.",
       .example = "lockbench show results/runs/ID.json --columns strategy,acquire_p99_seconds"},
      show);
}

}  // namespace lockbench::cli
