#include "cli/commands/repeat_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "results/file/option_values.h"
#include "results/tables/text.h"

namespace lockbench::cli {
namespace {

using results::OptionValue;

std::string_view command_name(const results::Result& result) {
  // Not `run`: that would put load on a store that was only watched.
  if (result.observed) return "watch";
  if (result.hazards) return "hazards";
  if (result.capacity) return "capacity";
  return result.experiment ? result.experiment->name() : "run";
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "'";
  for (const char c : results::printable(text)) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// How a number may be written: plainly, or as a duration in each unit of which it is a multiple.
std::vector<std::string> spellings(double value) {
  std::vector<std::string> texts{fmt::format("{}", value)};
  constexpr std::array<std::pair<double, std::string_view>, 4> kUnits{
      {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}}};
  for (const auto& [factor, unit] : kUnits) {
    const double in_unit = value * factor;
    const double whole = std::round(in_unit);
    if (whole != 0 && std::abs(in_unit - whole) < 1e-6 * std::abs(whole)) {
      texts.push_back(fmt::format("{:.0f}{}", whole, unit));
    }
  }
  return texts;
}

std::vector<std::vector<std::string>> spellings(const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return {{*text}};
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return {*list};
  if (const auto* flag = std::get_if<bool>(&value)) return {{*flag ? "true" : "false"}};
  std::vector<std::vector<std::string>> ways;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    ways.push_back({fmt::format("{}", *whole)});
  }
  if (const auto number = results::number_of(value)) {
    for (std::string& text : spellings(*number)) ways.push_back({std::move(text)});
  }
  return ways;
}

/// The texts with which the option takes exactly this value; nothing if there are none.
std::optional<std::vector<std::string>> texts_for(const Command& command, std::size_t index,
                                                  const OptionValue& value) {
  for (std::vector<std::string>& texts : spellings(value)) {
    OptionList options = command.options();
    Option& option = options.all()[index];
    const bool taken = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      // The command line would take it for an option.
      return !text.starts_with('-') && option.set(text).has_value();
    });
    if (taken && results::same_value(option.record(), value)) return std::move(texts);
  }
  return std::nullopt;
}

void add(const Option& option, const std::vector<std::string>& texts,
         std::vector<std::string>& words) {
  for (const std::string& text : texts) {
    if (!option.positional) words.push_back(fmt::format("--{}", option.name));
    if (option.type != Option::Type::flag) words.push_back(shell_quoted(text));
  }
}

}  // namespace

std::string repeat_command(const results::Result& result) {
  const std::vector<Command> commands = all_commands();
  const std::string_view name = command_name(result);
  const Command* const command = find_command(commands, name);
  if (command == nullptr) return "";
  std::vector<std::string> words{"lockbench", std::string(name)};
  std::vector<std::string> unknown;
  const OptionList defaults = command->options();
  for (std::size_t i = 0; i < defaults.all().size(); ++i) {
    const Option& option = defaults.all()[i];
    const std::string key = option.key();
    const auto found = result.workload.find(key);
    if (results::is_of_output(key) || found == result.workload.end()) continue;
    if (std::holds_alternative<std::nullptr_t>(found->second)) continue;
    if (results::same_value(found->second, option.record())) continue;
    if (const auto texts = texts_for(*command, i, found->second)) {
      add(option, *texts, words);
    } else {
      unknown.push_back(key);
    }
  }
  std::string line = fmt::format("{}", fmt::join(words, " "));
  if (!unknown.empty()) {
    line += fmt::format("\n# left out, as their values are not valid here: {}",
                        fmt::join(unknown, ", "));
  }
  return line;
}

}  // namespace lockbench::cli
