#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/console/publish.h"
#include "cli/options/option_types.h"
#include "cli/options/result_files.h"
#include "results/file/load.h"
#include "results/stats/comparison.h"
#include "results/tables/comparison_sheet.h"
#include "results/tables/markdown.h"
#include "results/tables/text.h"

namespace lockbench::cli {
namespace {

using Set = tl::expected<void, std::string>;

Option fail_on_option() {
  Option option{.name = "fail-on", .value_name = "EXPR", .repeatable = true};
  option.help =
      "exit code 99 when a change is both shown and beyond this bound, or the figure was not "
      "measured: acquire.p99>+10%, sections_per_second<-5%, handoff.p50>+200us; repeatable";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto regression = results::parse_regression(text);
    if (!regression) return tl::unexpected(regression.error());
    options.compare.fail_on.push_back(std::move(*regression));
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    std::vector<std::string> texts;
    for (const results::Regression& one : options.compare.fail_on) texts.push_back(one.text);
    return texts;
  };
  return option;
}

std::vector<Option> compare_options() {
  std::vector<Option> options = {
      result_files_option(
          "two result files: the second is compared with the first",
          [](auto& o) -> auto& { return o.compare.files; }),
      fail_on_option(),
      flag_option(
          "force", "compare although workload or environment differ",
          [](auto& o) -> auto& { return o.compare.force; }),
      number_option(
          "confidence", "P", "of all findings together", Range<double>{0.5, 0.999},
          [](auto& o) -> auto& { return o.compare.confidence; })};
  auto shared = some_run_options({"format"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

tl::expected<results::Result, UsageError> load_runs(const std::string& path) {
  auto result = results::load(path);
  if (!result) return tl::unexpected(UsageError{result.error()});
  if (result->runs.empty()) {
    return tl::unexpected(UsageError{fmt::format("{}: there are no runs in it to compare", path)});
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

std::string text_of(const results::ResultComparison& comparison, Format format) {
  if (format == Format::json) return results::to_json(comparison);
  if (format == Format::csv) return results::to_csv(comparison);
  const results::TextSheet sheet = results::sheet_of(comparison);
  const std::vector<std::string> lines = results::readings(comparison);
  std::string text;
  if (format == Format::markdown) {
    results::TextSheet escaped = sheet;
    for (auto& row : escaped.rows) row.front() = results::markdown_text(row.front());
    text = results::to_markdown(escaped);
  } else {
    text = results::to_table(sheet);
  }
  if (!lines.empty()) text += "\n";
  for (const std::string& line : lines) {
    text += format == Format::markdown ? fmt::format("- {}\n", results::markdown_text(line))
                                       : line + "\n";
  }
  return text;
}

bool nobody_measured(const std::string& figure, const results::ResultComparison& comparison) {
  const auto found = comparison.unmeasured.find(figure);
  return found != comparison.unmeasured.end() && found->second.size() == comparison.in_both &&
         std::none_of(comparison.differences.begin(), comparison.differences.end(),
                      [&](const results::Difference& one) { return one.figure == figure; });
}

/// One line for each difference that was not to be, and for each figure that can no longer be
/// judged: what does worst of all has no figures.
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
    if (nobody_measured(expression.figure, comparison)) {
      lines.push_back(fmt::format("{}: {} was measured neither in A nor in B", expression.text,
                                  expression.figure));
    }
  }
  return lines;
}

/// Nothing that is asked for may pass because it could not have failed.
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

tl::expected<int, UsageError> compare(const RunOptions& given) {
  const CompareOptions& options = given.compare;
  if (options.files.size() != 2) {
    return tl::unexpected(UsageError{
        fmt::format("two result files are wanted: lockbench compare A.json B.json (given: {})",
                    options.files.size())});
  }
  const auto a = load_runs(options.files[0]);
  if (!a) return tl::unexpected(a.error());
  const auto b = load_runs(options.files[1]);
  if (!b) return tl::unexpected(b.error());

  Console console(stderr, is_terminal(stderr), given.quiet);
  const std::vector<std::string> differing = results::incompatibilities(*a, *b);
  if (!differing.empty() && !options.force) {
    return tl::unexpected(UsageError{
        fmt::format("{} and {} are not of the same kind: {} (--force compares them all the same)",
                    options.files[0], options.files[1], joined(differing))});
  }
  results::ComparisonOptions how{.confidence = options.confidence, .more_figures = {}};
  for (const results::Regression& one : options.fail_on) how.more_figures.push_back(one.figure);
  results::ResultComparison comparison = results::compare(*a, *b, how);
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
  Ending ending;
  ending.errors = !print_text(text_of(comparison, given.format), console);
  for (const std::string& line : regressions(comparison, options.fail_on)) {
    console.warn(line);
    ending.threshold_missed = true;
  }
  return exit_code_of(ending);
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary = "What two results differ by, and whether that can be chance.",
          .options = compare_options(),
          .execute = compare};
}

}  // namespace lockbench::cli
