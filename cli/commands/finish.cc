#include "cli/commands/finish.h"

#include <fmt/format.h>

#include <random>

#include "cli/commands/report_page.h"
#include "cli/console/facts.h"
#include "cli/console/publish.h"
#include "results/file/save.h"

namespace lockbench::cli {

results::Result begin_result(WallTime now) {
  return {.id = run_id(now, std::random_device()()),
          .started_at = rfc3339(now),
          .lockbench = build_facts(),
          .environment = machine_facts()};
}

tl::expected<std::string, UsageError> out_path(const OutputOptions& options,
                                               const results::Result& result) {
  if (auto text = results::render(result, {}, look_of(options)); !text) {
    return tl::unexpected(UsageError{"--columns: " + text.error()});
  }
  std::string out =
      options.out.empty() ? fmt::format("results/runs/{}.json", result.id) : options.out;
  if (auto writable = results::check_writable(out); !writable) {
    return tl::unexpected(UsageError{fmt::format("--out: {}", writable.error())});
  }
  if (auto fits = check_report(options.report, out); !fits) return tl::unexpected(fits.error());
  return out;
}

int finish(const results::Result& result, const std::string& text, const std::string& out,
           Ending ending, Console& console, const std::string& page) {
  console.status("");
  ending.interrupted = ending.interrupted || result.interrupted;
  const bool saved = save_result(result, out, console);
  const bool reported = save_report(result, page, out, console);
  const bool printed = print_text(text, console);
  ending.errors = ending.errors || !saved || !reported || !printed;
  return exit_code_of(ending);
}

}  // namespace lockbench::cli
