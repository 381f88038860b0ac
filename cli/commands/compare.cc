#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/measured_pair.h"
#include "cli/console/console.h"
#include "cli/console/publish.h"
#include "cli/options/value_types.h"
#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/stats/comparison.h"
#include "results/stats/threshold.h"
#include "results/tables/comparison.h"

namespace lockbench::cli {
namespace {

struct CompareOptions {
  static constexpr std::string_view kCommand = "compare";
  std::vector<std::string> files;
  bool run = false;
  std::optional<int> repeat;
  std::vector<results::Regression> fail_on;
  double confidence = 0.95;
  bool strict_gate = false, force = false;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(options, files,
                  "two result files; the second is compared with the first. With --run: two TOML "
                  "files with the options of run as keys");
    options.add_flag("run", run,
                     "measure the two configurations first, in turn, and save both results");
    options.add("repeat", "N", repeat, whole_number(1, 1000),
                "with --run: runs of each strategy and configuration", "the files', or 10");
    options.add("fail-on", "EXPR", fail_on,
                parsed(results::parse_regression, &results::Regression::text),
                "exit 99 on a significant regression beyond this bound, or if the figure is "
                "missing: acquire.p99>+10%, sections_per_second<-5%, handoff.p50>+200us");
    options.add_flag("strict-gate", strict_gate,
                     "exit 99 also if such a regression cannot be excluded");
    options.add_flag("force", force,
                     "compare although workload or environment differ; with --fail-on also "
                     "interrupted results and invalid runs");
    options.add("confidence", "P", confidence, number(0.5, 0.999),
                "confidence of all findings together, and of each interval alone");
    options.only({"format", "columns", "quiet"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& /*options*/) const {
    if (repeat && !run) throw UsageError("--repeat requires --run");
    if (strict_gate && fail_on.empty()) throw UsageError("--strict-gate requires --fail-on");
    if (output.format == Format::json && !output.columns.empty()) {
      throw UsageError("--columns: JSON has no columns to choose: use --format csv");
    }
    if (files.size() == 2) return;
    throw UsageError("expected two {}: lockbench compare {} (given: {})",
                     run ? "TOML files" : "result files",
                     run ? "--run a.toml b.toml" : "A.json B.json", files.size());
  }
};

results::Result load_runs(const std::string& path) {
  results::Result result = must(results::load(path));
  if (result.runs.empty()) throw UsageError("{}: it contains no runs to compare", path);
  return result;
}

/// One line, however much differs.
std::string joined(const std::vector<std::string>& differences) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string> first(
      differences.begin(),
      differences.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, differences.size())));
  std::string line = fmt::format("{}", fmt::join(first, "; "));
  if (differences.size() > kMost) line += fmt::format("; {} more", differences.size() - kMost);
  return line;
}

ResultPair load_pair(const CompareOptions& options) {
  const auto& files = options.files;
  return {load_runs(files[0]), load_runs(files[1]), files[0], files[1]};
}

ResultPair run_pair(const CompareOptions& options) {
  must(results::render(results::comparison_block({}), look_of(options.output)), "--columns");
  PairOptions how{.a = options.files[0],
                  .b = options.files[1],
                  .repeat = options.repeat,
                  .quiet = options.output.quiet};
  how.least_repeat =
      static_cast<int>(results::repetitions_of_gates(options.fail_on.size(), options.confidence));
  return measure_pair(how);
}

results::ResultComparison compared(const ResultPair& pair, const CompareOptions& options) {
  const std::vector<std::string> differing = results::incompatibilities(pair.a, pair.b);
  if (!differing.empty() && !options.force && !options.run) {
    throw UsageError("{} and {} are not comparable: {} (--force compares them anyway)", pair.file_a,
                     pair.file_b, joined(differing));
  }
  auto comparison = results::compare(
      pair.a, pair.b, {.confidence = options.confidence, .fail_on = options.fail_on});
  if (comparison.in_both == 0) {
    throw UsageError("{} and {} have no strategy in common", pair.file_a, pair.file_b);
  }
  if (!comparison.undecided.empty()) {
    throw UsageError("{} and {}: {}", pair.file_a, pair.file_b, comparison.undecided);
  }
  if (!comparison.gates_undecided.empty()) {
    throw UsageError("--fail-on: {}", comparison.gates_undecided);
  }
  if (!options.fail_on.empty() && !comparison.doubts.empty() && !options.force) {
    throw UsageError("--fail-on: {} (--force compares them anyway)",
                     fmt::join(comparison.doubts, "; "));
  }
  if (!differing.empty()) {
    comparison.notes.push_back(fmt::format("they differ in {}", joined(differing)));
  }
  if (options.run) {
    comparison.notes.push_back(fmt::format("A is {}, B is {}", pair.file_a, pair.file_b));
  }
  return comparison;
}

int show(const results::ResultComparison& comparison, const CompareOptions& options,
         Console& console) {
  const auto text = options.output.format == Format::json
                        ? results::to_json(comparison)
                        : results::render(comparison_block(comparison), look_of(options.output));
  Ending ending;
  ending.errors = !print_text(must(text, "--columns"));
  for (const std::string& line : gate_lines(comparison)) console.warn(line);
  ending.threshold_missed =
      std::any_of(comparison.gates.begin(), comparison.gates.end(), [&](const results::Gate& gate) {
        using Outcome = results::Gate::Outcome;
        return gate.outcome != Outcome::kept &&
               (gate.outcome != Outcome::not_excluded || options.strict_gate);
      });
  return exit_code_of(ending);
}

int compare(const CompareOptions& options) {
  const ResultPair pair = options.run ? run_pair(options) : load_pair(options);
  if (pair.code == exit_code::kInterrupted || pair.a.runs.empty() || pair.b.runs.empty()) {
    return pair.code;
  }
  Console console(stderr, is_terminal(stderr), options.output.quiet);
  try {
    return gravest(pair.code, show(compared(pair, options), options, console));
  } catch (const UsageError& error) {
    if (pair.code == exit_code::kFine) throw;
    console.warn(error.message());
    return pair.code;
  }
}

}  // namespace

Command compare_command() {
  return make_command<CompareOptions>(
      {.task = kCompareResults,
       .summary = "Compare two results, or two configurations, with significance.",
       .example = "lockbench compare before.json after.json --fail-on 'acquire.p99>+10%'",
       .over_ranks = true},
      compare);
}

}  // namespace lockbench::cli
