#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/console/publish.h"
#include "cli/options/value_types.h"
#include "results/file/load.h"
#include "results/stats/compared_figures.h"
#include "results/stats/comparison.h"
#include "results/stats/regression.h"
#include "results/stats/tiers.h"
#include "results/tables/comparison.h"

namespace lockbench::cli {
namespace {

struct CompareOptions {
  static constexpr Commands kCommand = kCompare;
  std::vector<std::string> files;
  std::vector<results::Regression> fail_on;
  double confidence = 0.95;
  bool force = false;
  OutputOptions output;

  void declare(OptionList& options) {
    declare_files(options, files, "two result files; the second is compared with the first");
    options.add(
        {"fail-on", "EXPR"}, fail_on,
        parsed(results::parse_regression, [](const results::Regression& one) { return one.text; }),
        "exit 99 on a significant regression beyond this bound, or if the figure is "
        "missing: acquire.p99>+10%, sections_per_second<-5%, handoff.p50>+200us");
    options.add_flag({"force", ""}, force, "compare although workload or environment differ");
    options.add({"confidence", "P"}, confidence, number(0.5, 0.999),
                "confidence of all findings together");
    output.declare(options);
  }
};

tl::expected<results::Result, UsageError> load_runs(const std::string& path) {
  auto result = results::load(path);
  if (!result) return tl::unexpected(UsageError{result.error()});
  if (result->runs.empty()) {
    return tl::unexpected(UsageError{fmt::format("{}: it contains no runs to compare", path)});
  }
  return std::move(*result);
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

bool is_unmeasured(const std::string& figure, const results::ResultComparison& comparison) {
  const auto found = comparison.unmeasured.find(figure);
  return found != comparison.unmeasured.end() && found->second.size() == comparison.in_both &&
         std::none_of(comparison.differences.begin(), comparison.differences.end(),
                      [&](const results::Difference& one) { return one.figure == figure; });
}

/// One line for each regression, and for each figure that is missing: a strategy that grants no
/// lock at all has no figures.
std::vector<std::string> regressions(const results::ResultComparison& comparison,
                                     const std::vector<results::Regression>& fail_on) {
  std::vector<std::string> lines;
  for (const results::Regression& expression : fail_on) {
    for (const results::Difference& difference : comparison.differences) {
      if (difference.figure == expression.figure &&
          difference.finding == results::Finding::not_in_b) {
        lines.push_back(fmt::format("{}: {} of {} was not measured in B", expression.text,
                                    difference.figure, difference.strategy));
      }
      if (!results::is_regression(expression, difference)) continue;
      lines.push_back(fmt::format("{}: {} is {} ({} against {})", expression.text,
                                  difference.strategy, to_string(difference.finding), difference.b,
                                  difference.a));
    }
    if (is_unmeasured(expression.figure, comparison)) {
      lines.push_back(fmt::format("{}: {} was measured neither in A nor in B", expression.text,
                                  expression.figure));
    }
  }
  return lines;
}

/// --fail-on must not pass only because there are too few repetitions to show a regression.
tl::expected<void, UsageError> check_confidence(const results::ResultComparison& comparison,
                                                const std::vector<results::Regression>& fail_on) {
  for (const results::Regression& expression : fail_on) {
    for (const results::Difference& difference : comparison.differences) {
      if (difference.figure == expression.figure &&
          difference.finding == results::Finding::cannot_tell) {
        return tl::unexpected(UsageError{"--fail-on: " + comparison.too_few});
      }
    }
  }
  return {};
}

tl::expected<int, UsageError> compare(const CompareOptions& options) {
  if (options.files.size() != 2) {
    return tl::unexpected(UsageError{
        fmt::format("expected two result files: lockbench compare A.json B.json (given: {})",
                    options.files.size())});
  }
  const auto a = load_runs(options.files[0]);
  if (!a) return tl::unexpected(a.error());
  const auto b = load_runs(options.files[1]);
  if (!b) return tl::unexpected(b.error());

  Console console(stderr, is_terminal(stderr), options.output.quiet);
  const std::vector<std::string> differing = results::incompatibilities(*a, *b);
  if (!differing.empty() && !options.force) {
    return tl::unexpected(
        UsageError{fmt::format("{} and {} are not comparable: {} (--force compares them anyway)",
                               options.files[0], options.files[1], joined(differing))});
  }
  for (const results::Regression& one : options.fail_on) {
    if (a->version == b->version || !results::changed_since_version_1(one.figure)) continue;
    return tl::unexpected(UsageError{
        fmt::format("--fail-on: {} means something else in {}, a file of version 1: measure again",
                    one.figure, options.files[a->version == 1 ? 0 : 1])});
  }
  results::ComparisonOptions how{.confidence = options.confidence, .more_figures = {}};
  for (const results::Regression& one : options.fail_on) how.more_figures.push_back(one.figure);
  results::ResultComparison comparison = results::compare(*a, *b, how);
  for (std::string& line : results::agreement(*a, *b)) comparison.notes.push_back(std::move(line));
  if (comparison.in_both == 0) {
    return tl::unexpected(UsageError{
        fmt::format("{} and {} have no strategy in common", options.files[0], options.files[1])});
  }
  if (auto can = check_confidence(comparison, options.fail_on); !can) {
    return tl::unexpected(can.error());
  }
  if (!differing.empty()) {
    comparison.notes.push_back(fmt::format("they differ in {}", joined(differing)));
  }
  if (options.output.format == Format::json && !options.output.columns.empty()) {
    return tl::unexpected(UsageError{"--columns: JSON has no columns to choose: use --format csv"});
  }
  const auto text = options.output.format == Format::json
                        ? results::to_json(comparison)
                        : results::render(comparison_table(comparison), notes(comparison),
                                          look_of(options.output));
  if (!text) return tl::unexpected(UsageError{"--columns: " + text.error()});
  Ending ending;
  ending.errors = !print_text(*text, console);
  for (const std::string& line : regressions(comparison, options.fail_on)) {
    console.warn(line);
    ending.threshold_missed = true;
  }
  return exit_code_of(ending);
}

}  // namespace

Command compare_command() {
  return make_command<CompareOptions>(
      {.name = "compare",
       .task = kCompareResults,
       .summary = "Compare two result files, with significance.",
       .example = "lockbench compare before.json after.json --fail-on 'acquire.p99>+10%'"},
      compare);
}

}  // namespace lockbench::cli
