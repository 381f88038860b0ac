#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "choose/answer_text.h"
#include "choose/reference.h"
#include "cli/commands/commands.h"
#include "cli/console/console.h"
#include "cli/console/exit_code.h"
#include "cli/console/publish.h"
#include "cli/options/option_types.h"
#include "cli/options/questions.h"
#include "cli/options/result_files.h"
#include "results/file/load.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

std::vector<Option> choose_options() {
  std::vector<Option> options = requirement_options();
  options.push_back(result_files_option(
      "result files to judge by (the reference results that lockbench carries along)",
      [](auto& o) -> auto& { return o.choose.files; }));
  options.push_back(choice_option<Format>(
      "format", "what stdout shows",
      {{"table", Format::table}, {"json", Format::json}, {"markdown", Format::markdown}},
      [](auto& o) -> auto& { return o.format; }));
  auto shared = some_run_options({"config"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

/// On a terminal one by one; elsewhere they must be given.
tl::expected<void, UsageError> ask_for_requirements(RunOptions& options) {
  const std::vector<Option> all = requirement_options();
  if (isatty(STDIN_FILENO) == 0) {
    std::string names;
    for (const Option& option : all) {
      if (option.name != "rank-by")
        names += fmt::format("{}--{}", names.empty() ? "" : ", ", option.name);
    }
    return tl::unexpected(
        UsageError{fmt::format("a requirement is wanted, at least one of {}", names)});
  }
  std::vector<Option> questions = all;
  std::erase_if(questions, [](const Option& option) { return option.name == "rank-by"; });
  fmt::print(stderr, "What is the lock to do? An empty answer: it does not matter.\n");
  return ask(questions, stdin, stderr, options);
}

tl::expected<void, UsageError> check_work(const choose::Requirements& requirements) {
  const auto& p50 = requirements.work_p50;
  const auto& p99 = requirements.work_p99;
  if (!p50 || !p99 || *p50 <= *p99) return {};
  return tl::unexpected(
      UsageError{fmt::format("--work-time-p50 ({}) must not be longer than --work-time-p99 ({})",
                             format_duration(*p50), format_duration(*p99))});
}

tl::expected<std::vector<choose::Source>, UsageError> load_files(
    const std::vector<std::string>& paths) {
  std::vector<choose::Source> sources;
  for (const std::string& path : paths) {
    auto result = results::load(path);
    if (!result) return tl::unexpected(UsageError{result.error()});
    if (result->runs.empty() && !result->hazards && !result->experiment) {
      return tl::unexpected(
          UsageError{fmt::format("{}: there are no runs, plays or points in it", path)});
    }
    sources.push_back({path, std::move(*result)});
  }
  return sources;
}

std::string text_of(const choose::Answer& answer, Format format) {
  if (format == Format::json) return choose::to_json(answer);
  const bool folds = format == Format::table && is_terminal(stdout);
  return choose::to_text(answer, {.markdown = format == Format::markdown,
                                  .width = folds ? terminal_width(stdout) : 0});
}

tl::expected<int, UsageError> choose_strategy(const RunOptions& given) {
  RunOptions options = given;
  if (options.choose.requirements.none()) {
    if (auto asked = ask_for_requirements(options); !asked) return tl::unexpected(asked.error());
  }
  const choose::Requirements& requirements = options.choose.requirements;
  if (auto fits = check_work(requirements); !fits) return tl::unexpected(fits.error());
  auto files = load_files(options.choose.files);
  if (!files) return tl::unexpected(files.error());
  const choose::Evidence evidence(std::move(*files), choose::reference());
  const choose::Answer answer = choose::choose(requirements, all_strategies(), evidence);
  Console console(stderr, is_terminal(stderr), options.quiet);
  Ending ending{.threshold_missed = answer.ranked.empty()};
  ending.errors = !print_text(text_of(answer, options.format), console);
  return exit_code_of(ending);
}

}  // namespace

Command choose_command() {
  return {.name = "choose",
          .summary = "Which strategy, with which settings, and why.",
          .options = choose_options(),
          .execute = choose_strategy};
}

}  // namespace lockbench::cli
