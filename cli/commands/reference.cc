#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "cli/commands/commands.h"
#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/console/publish.h"
#include "cli/options/result_files.h"
#include "results/file/json.h"
#include "results/file/load.h"
#include "results/file/thin.h"
#include "results/tables/readme_tables.h"

namespace lockbench::cli {
namespace {

tl::expected<int, UsageError> thin(const RunOptions& options) {
  const auto& files = options.choose.files;
  if (files.size() != 1) {
    return tl::unexpected(UsageError{"one result file is wanted: lockbench thin FILE > THIN.json"});
  }
  auto result = results::load(files.front());
  if (!result) return tl::unexpected(UsageError{result.error()});
  Console console(stderr, is_terminal(stderr), false);
  const bool printed =
      print_text(results::to_compact_json(results::thinned(std::move(*result))), console);
  return printed ? exit_code::kFine : exit_code::kErrors;
}

tl::expected<int, UsageError> draw_tables(const RunOptions& options) {
  const auto& files = options.choose.files;
  if (files.size() < 2) {
    return tl::unexpected(UsageError{
        "a page and results are wanted: lockbench readme-tables README.md RESULT.json..."});
  }
  std::ifstream page(files.front(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  if (!page.is_open() || page.bad()) {
    return tl::unexpected(UsageError{fmt::format("{}: cannot be read", files.front())});
  }
  std::vector<results::Result> sources;
  for (std::size_t i = 1; i < files.size(); ++i) {
    auto result = results::load(files[i]);
    if (!result) return tl::unexpected(UsageError{result.error()});
    sources.push_back(std::move(*result));
  }
  results::KnownFlaws flaws;
  for (const results::Result& source : sources) flaws.merge(known_flaws(source));
  const auto drawn = results::with_tables(text, results::readme_tables(sources, flaws));
  if (!drawn)
    return tl::unexpected(UsageError{fmt::format("{}: {}", files.front(), drawn.error())});
  Console console(stderr, is_terminal(stderr), false);
  return print_text(*drawn, console) ? exit_code::kFine : exit_code::kErrors;
}

}  // namespace

Command thin_command() {
  return {.name = "thin",
          .summary = "A result file without histograms, series and timelines, on stdout.",
          .options = {result_files_option(
              "the result file", [](auto& o) -> auto& { return o.choose.files; })},
          .execute = thin,
          .hidden = true};
}

Command readme_tables_command() {
  return {.name = "readme-tables",
          .summary = "A page with its tables drawn anew from results, on stdout.",
          .options = {result_files_option(
              "the page, then the result files", [](auto& o) -> auto& { return o.choose.files; })},
          .execute = draw_tables,
          .hidden = true};
}

}  // namespace lockbench::cli
