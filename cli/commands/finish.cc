#include "cli/commands/finish.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <utility>

#include "cli/console/facts.h"
#include "cli/console/publish.h"
#include "results/file/save.h"
#include "strategies/duration.h"

namespace lockbench::cli {

namespace {

/// Where a result goes if the folder of the user cannot be written to.
std::string fallback_path(const results::Result& result) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return (error ? "/tmp" : folder) / fmt::format("lockbench-{}.json", result.id);
}

}  // namespace

results::Result begin_result(const OutputOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  return {.id = run_id(now, std::random_device()()),
          .started_at = rfc3339(now),
          .command = options.command,
          .lockbench = build_facts(),
          .environment = machine_facts()};
}

std::string out_path(const OutputOptions& options, const results::Result& result) {
  must(results::render(result, {}, look_of(options)), "--columns");
  std::string out =
      options.out.empty() ? fmt::format("results/runs/{}.json", result.id) : options.out;
  if (!options.events.empty() && (out == options.events || same_file(out, options.events))) {
    throw UsageError("--events and --out must be different: both are {}", out);
  }
  if (out != kStdout) {
    auto writable = results::check_writable(out);
    if (!writable && options.out.empty()) {
      out = fallback_path(result);
      writable = results::check_writable(out);
    }
    must(std::move(writable), "--out");
  }
  check_report(options.report, out);
  return out;
}

int finish(const results::Result& result, const OutputOptions& options, ResultFile& file,
           Ending ending, const std::optional<std::string>& text) {
  Console& console = file.console();
  console.status("");
  ending.interrupted |= result.interrupted;
  if (file.path() == fallback_path(result)) console.warn("results/runs cannot be written to here");
  const bool saved = file.save(result);
  const bool reported = save_report(result, options.report, file.path(), console);
  const bool silent = file.is_stdout() || options.events == kStdout;
  const bool printed = silent || print_text(text ? *text : render(result, options));
  ending.errors |= !saved || !reported || !printed;
  return exit_code_of(ending);
}

results::report::Source report_source(results::Result result, const std::string& file) {
  results::KnownFlaws flaws = known_flaws(result);
  return {file, std::move(result), std::move(flaws)};
}

bool same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // Without absolute(), a file that is not there yet keeps the name that it was given.
  const auto path_of = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, ignored), ignored);
  };
  const fs::path path = path_of(one);
  return !path.empty() && path == path_of(other) && !fs::is_character_file(path, ignored);
}

void check_report(const std::string& page, const std::string& out) {
  if (page.empty()) return;
  if (same_file(page, out)) {
    throw UsageError("--report and --out must be different files: both are {}", page);
  }
  must(results::check_writable(page), "--report");
}

bool save_page(const std::string& page, const std::string& path, Console& console) {
  const auto saved = results::save(path, page);
  if (!saved) {
    console.warn("the report was not saved: " + saved.error());
    return false;
  }
  if (!saved->warning.empty()) console.warn(saved->warning);
  console.note("report in " + saved->path.string());
  return saved->warning.empty();
}

bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console) {
  if (page.empty()) return true;
  const results::report::Source source = report_source(result, out);
  return save_page(results::report::to_page(std::span(&source, 1), results::report::make_nonce()),
                   page, console);
}

}  // namespace lockbench::cli
