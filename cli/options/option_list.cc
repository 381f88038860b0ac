#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/options/config_file.h"
#include "cli/options/option.h"
#include "cli/options/text.h"

namespace lockbench::cli {
namespace {

constexpr std::size_t kHelpColumn = 30, kHelpWidth = 100;

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

/// `text` broken at spaces into lines of `width` columns; a line break starts a new line.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string lines;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (column > 0) {
      const bool fits = column + 1 + end <= width;
      lines += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    lines += text.substr(0, end);
    column += end;
    if (end < text.size() && text[end] == '\n') {
      lines += '\n';
      column = 0;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string description(const Option& option) {
  std::string text = option.help;
  const bool says_so = option.help.find("repeatable") != std::string::npos;
  if (option.repeatable && !option.positional && !says_so) text += "; repeatable";
  if (!option.default_text.empty()) text += fmt::format(" (default: {})", option.default_text);
  return wrapped(text, kHelpWidth - kHelpColumn);
}

void define(CLI::App& app, const std::vector<Option>& options) {
  app.set_help_flag("-h,--help", "show this text");
  app.allow_extras();
  app.get_formatter()->column_width(kHelpColumn);
  for (const Option& option : options) {
    if (option.type == Option::Type::flag) {
      app.add_flag(dashed(option.name))->description(description(option))->group(option.group);
      continue;
    }
    const std::string name = option.positional ? option.value_name : dashed(option.name);
    CLI::Option* defined = app.add_option(name)->description(description(option))->take_all();
    defined->type_name(option.positional ? "" : option.value_name);
    if (!option.positional) defined->group(option.group);
    // Each mention takes one value.
    defined->expected(option.positional ? 0 : 1,
                      option.repeatable ? CLI::detail::expected_max_vector_size : 1);
    defined->allow_extra_args(option.positional);
  }
}

/// The option's error for an empty value says what is allowed.
UsageError value_missing(const Option& option) {
  const auto refused = option.parse("");
  return {
      fmt::format("--{} needs a value: {}", option.name, refused ? option.help : refused.error())};
}

/// The value of an unknown option may be a secret: it is not shown.
UsageError unknown_option(const std::vector<Option>& options, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const Option& option : options) {
    if (!option.positional) known.push_back(dashed(option.name));
  }
  return {fmt::format("unknown option {}{} (--help shows all)", name,
                      did_you_mean(name, {known.begin(), known.end()}))};
}

tl::expected<void, UsageError> check_values(const OptionList& list, const Option& option,
                                            const std::vector<std::string>& values) {
  if (option.positional || option.type == Option::Type::flag) return {};
  if (values.size() > 1 && !option.repeatable) {
    return tl::unexpected(UsageError{
        fmt::format("--{} is given {} times: once is allowed", option.name, values.size())});
  }
  for (const std::string& value : values) {
    const std::string name = value.substr(0, value.find('='));
    const bool is_option = name.starts_with("--") && list.find(name.substr(2)) != nullptr;
    if (value.empty() || value == "--" || is_option) return tl::unexpected(value_missing(option));
  }
  return {};
}

/// What CLI11 could not place.
tl::expected<void, UsageError> check_leftovers(const std::vector<Option>& options,
                                               const std::vector<std::string>& leftovers) {
  for (const std::string& argument : leftovers) {
    if (argument == "--") continue;
    if (argument.starts_with('-')) return tl::unexpected(unknown_option(options, argument));
    return tl::unexpected(
        UsageError{fmt::format("\"{}\": this command takes only options", argument)});
  }
  return {};
}

/// `prefix` tells in messages where the values come from.
tl::expected<void, UsageError> apply(Option& option, const std::vector<std::string>& values,
                                     const std::string& prefix) {
  option.given = true;
  for (const std::string& value : values) {
    if (auto done = option.set(value); !done) {
      return tl::unexpected(UsageError{fmt::format("{}{}: {}", prefix, option.name, done.error())});
    }
  }
  return {};
}

}  // namespace

tl::expected<void, std::string> Option::set(const std::string& text) {
  if (!comma_separated) return parse(text);
  for (const std::string& word : split_at_commas(text)) {
    if (auto done = parse(word); !done) return done;
  }
  return {};
}

results::OptionValue Option::record() const {
  results::OptionValue current = value();
  return std::holds_alternative<std::nullptr_t>(current) ? value_if_unset : current;
}

std::string Option::key() const {
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Option& Option::as_positional() {
  positional = true;
  return *this;
}

Option& Option::without_commas() {
  comma_separated = false;
  return *this;
}

Option& Option::not_in_file() {
  in_file = false;
  return *this;
}

Option& Option::recorded_if_unset(results::OptionValue unset) {
  value_if_unset = std::move(unset);
  return *this;
}

Option& OptionList::add_flag(const Name& name, bool& place, std::string help) {
  Option option{.help = std::move(help), .type = Option::Type::flag};
  option.parse = [&place](const std::string& text) -> tl::expected<void, std::string> {
    if (text != "true" && text != "false") {
      return tl::unexpected(fmt::format("\"{}\" is not true or false", text));
    }
    place = text == "true";
    return {};
  };
  option.value = [&place] { return place; };
  return add_custom(name, std::move(option));
}

Option& OptionList::add_custom(const Name& name, Option option) {
  option.name = name.name;
  option.value_name = name.value_name;
  option.group = group_;
  if ((name.commands & command_) == 0) return not_taken_ = std::move(option);
  return options_.emplace_back(std::move(option));
}

const Option* OptionList::find(std::string_view name) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& option) {
    return !option.positional && option.name == name;
  });
  return found == options_.end() ? nullptr : &*found;
}

bool OptionList::given(std::string_view name) const {
  const Option* option = find(name);
  return option != nullptr && option->given;
}

tl::expected<void, UsageError> OptionList::read(std::span<const std::string> args) {
  // Help goes before mistakes, and is no option's value.
  const auto end = std::find(args.begin(), args.end(), "--");
  help_wanted_ = std::any_of(args.begin(), end, [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
  if (help_wanted_) return {};
  // CLI11 would take the next argument as the value of "--name=".
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (!args[i].starts_with("--") || !args[i].ends_with('=')) continue;
    const Option* option = find(std::string_view(args[i]).substr(2, args[i].size() - 3));
    if (option != nullptr) return tl::unexpected(value_missing(*option));
  }
  CLI::App app;
  define(app, options_);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // the last one first
  } catch (const CLI::ArgumentMismatch& error) {
    // Only the last argument can lack its value.
    const Option* option = args.back().starts_with("--") ? find(args.back().substr(2)) : nullptr;
    return tl::unexpected(option != nullptr ? value_missing(*option) : UsageError{error.what()});
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(UsageError{error.what()});
  }
  if (auto none = check_leftovers(options_, app.remaining()); !none) return none;

  for (Option& option : options_) {
    const auto& values =
        app.get_option(option.positional ? option.value_name : dashed(option.name))->results();
    if (values.empty()) continue;
    if (auto good = check_values(*this, option, values); !good) return good;
    if (auto done = apply(option, values, "--"); !done) return done;
  }
  const Option* config = find("config");
  if (config == nullptr || !config->given) return {};
  const auto file = std::get<std::string>(config->value());
  const auto from_file = read_config_file(file, options_);
  if (!from_file) return tl::unexpected(from_file.error());
  for (Option& option : options_) {
    const auto values = from_file->find(option.name);
    if (option.given || values == from_file->end()) continue;
    if (auto done = apply(option, values->second, file + ": "); !done) return done;
  }
  return {};
}

std::string OptionList::help(std::string_view command, std::string_view summary,
                             std::string_view example) const {
  CLI::App app(fmt::format("Example: {}\n\n{}\n", example, summary), std::string(command));
  define(app, options_);
  return app.help("lockbench");
}

OptionRecord OptionList::record() const {
  OptionRecord record;
  for (const Option& option : options_) record.emplace(option.key(), option.record());
  return record;
}

}  // namespace lockbench::cli
