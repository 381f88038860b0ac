#include <fmt/format.h>

#include "cli/commands/hazards.h"
#include "cli/options/option_types.h"

namespace lockbench::cli {
namespace {

Option scenarios_option() {
  Option option{.name = "scenarios", .value_name = "SCENARIO"};
  option.help = "a name or a glob, such as 'crash-*' (all):";
  std::size_t line_from = option.help.size();
  for (const hazards::Scenario* scenario : hazards::all_scenarios()) {
    constexpr std::size_t kColumns = 100;
    const bool full = option.help.size() - line_from + scenario->name.size() > kColumns;
    if (full || option.help.back() == ':') {
      option.help += "\n ";
      line_from = option.help.size();
    }
    option.help += fmt::format(" {}", scenario->name);
  }
  option.repeatable = true;
  option.positional = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    options.hazards.scenarios.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) {
    const auto& given = options.hazards.scenarios;
    return given.empty() ? std::vector<std::string>{"all"} : given;
  };
  return option;
}

Option strategies_option() {
  Option option{.name = "strategies", .value_name = "S,..."};
  option.help = "names and globs, with commas in between (all)";
  option.repeatable = true;
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    std::size_t from = 0;
    while (from <= text.size()) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      if (comma == from) {
        return tl::unexpected(fmt::format(
            "\"{}\" names nothing at one place: names and globs, with commas in between", text));
      }
      options.strategies.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
    return {};
  };
  option.get = [](const RunOptions& options) {
    return options.strategies.empty() ? std::vector<std::string>{"all"} : options.strategies;
  };
  return option;
}

Option explain_option() {
  Option option{.name = "explain", .value_name = "SCENARIO/STRATEGY"};
  option.help = "plays this one and shows all that happened";
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    if (text.find('/') == std::string::npos) {
      return tl::unexpected(
          fmt::format("\"{}\" is not SCENARIO/STRATEGY, such as late-release/redis-set-nx", text));
    }
    options.hazards.explain = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.hazards.explain.empty()) return nullptr;
    return options.hazards.explain;
  };
  return option;
}

Option ratio_option() {
  constexpr Range<double> kRange{0.1, 100};
  Option option{.name = "dose-ratio", .value_name = "R", .type = Option::Type::number};
  option.help = "with --dose: a length as a multiple of the TTL; repeatable (0.5 to 3)";
  option.repeatable = true;
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    const auto ratio = read_number<double>(text);
    if (!ratio || *ratio < kRange.min || *ratio > kRange.max) {
      return tl::unexpected(
          fmt::format("\"{}\" is not a number from {} to {}", text, kRange.min, kRange.max));
    }
    options.hazards.dose_ratios.push_back(*ratio);
    return {};
  };
  option.get = [](const RunOptions& options) {
    std::vector<std::string> texts;
    for (const double ratio : options.hazards.dose_ratios)
      texts.push_back(fmt::format("{}", ratio));
    return texts;
  };
  return option;
}

}  // namespace

std::vector<Option> hazard_options() {
  std::vector<Option> options = {
      scenarios_option(),
      strategies_option(),
      explain_option(),
      flag_option(
          "quick", "only the scenarios that decide most",
          [](auto& o) -> auto& { return o.hazards.quick; }),
      number_option(
          "repeat", "N", "plays of each cell: do they all end alike?", Range<int>{1, 1000},
          [](auto& o) -> auto& { return o.hazards.repeat; }),
      flag_option(
          "dose", "how often it goes wrong, by how long the fault lasts",
          [](auto& o) -> auto& { return o.hazards.dose; }),
      number_option(
          "dose-plays", "N", "with --dose: plays of each length (10)", Range<int>{1, 1000},
          [](auto& o) -> auto& { return o.hazards.dose_plays; }),
      ratio_option(),
      number_option(
          "at-once", "N", "plays side by side (6; 24 with --dose)", Range<int>{1, 64},
          [](auto& o) -> auto& { return o.hazards.at_once; })};
  auto shared = some_run_options({"out", "report", "format", "quiet", "config"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

}  // namespace lockbench::cli
