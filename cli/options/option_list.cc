#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "cli/options/option.h"
#include "results/tables/text.h"
#include "strategies/number.h"

namespace lockbench::cli {
namespace {

constexpr std::size_t kHelpColumn = 30, kHelpWidth = 100;
/// With more options, help shows the usual ones unless it is asked for all.
constexpr std::size_t kManyOptions = 40;

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

/// The environment variable of an option: "LOCKBENCH_COUNTER_REDIS".
std::string environment_name(std::string_view option) {
  std::string name = "LOCKBENCH_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

/// The option of "--name" or "--name=..."; null if the word is not one.
const Option* option_in(const OptionList& list, std::string_view word) {
  return word.starts_with("--") ? list.find(word.substr(2, word.find('=') - 2)) : nullptr;
}

std::string folded_description(const Option& option) {
  return results::fold(option.description(), kHelpWidth - kHelpColumn);
}

void define(CLI::App& app, const std::vector<Option>& options) {
  app.set_help_flag("-h,--help", "show this text");
  app.allow_extras();
  app.get_formatter()->column_width(kHelpColumn);
  for (const Option& option : options) {
    if (option.flag) {
      app.add_flag(dashed(option.name))
          ->description(folded_description(option))
          ->group(option.group);
      continue;
    }
    const std::string name = option.positional ? option.value_name : dashed(option.name);
    CLI::Option* defined =
        app.add_option(name)->description(folded_description(option))->take_all();
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
  const auto taken = option.parse({""});
  return UsageError("--{} needs a value: {}", option.name, taken ? option.help : taken.error());
}

/// Leaves out the value, which may be a secret, even if it follows a single letter: -pSECRET.
UsageError unknown_option(const std::vector<Option>& options, const std::string& argument) {
  const bool letter = !argument.starts_with("--");
  const std::string name = argument.substr(0, letter ? 2 : argument.find_first_of("=:@ "));
  std::vector<std::string> known;
  for (const Option& option : options) {
    if (!option.positional) known.push_back(dashed(option.name));
  }
  return UsageError("unknown option {}{} (--help shows all)", name,
                    did_you_mean(name, {known.begin(), known.end()}));
}

void check_values(const OptionList& list, const Option& option,
                  const std::vector<std::string>& values) {
  if (option.positional && std::ranges::any_of(values, holds_password)) {
    throw UsageError(
        "a URL or DSN is not a {}: servers are given with --redis URL, --postgres DSN; a value "
        "with spaces needs quotes",
        option.value_name);
  }
  if (option.positional || option.flag) return;
  if (option.secret && std::ranges::any_of(values, holds_password)) {
    throw UsageError(
        "--{0} has a password, which the process list would show: give --{0} @FILE, {1} in the "
        "environment{2}",
        option.name, environment_name(option.name),
        list.find("config") == nullptr ? "" : ", or a --config file");
  }
  if (values.size() > 1 && !option.repeatable) {
    throw UsageError("--{} is given {} times, but only once is allowed", option.name,
                     values.size());
  }
  for (const std::string& value : values) {
    const bool is_option = option_in(list, value) != nullptr;
    if (value.empty() || value == "--" || is_option) throw value_missing(option);
  }
}

/// An argument that is not an option, or part of a value that was not quoted. If the command has
/// secret options, the argument may be a secret: the message names the option before it instead.
UsageError stray_argument(const OptionList& list, std::span<const std::string> args,
                          const std::string& argument) {
  const bool secret = std::ranges::any_of(list.all(), &Option::secret);
  if (!secret) return UsageError("\"{}\": this command takes only options", argument);
  std::string place = "the first argument";
  for (const std::string& word : args) {
    if (word == argument) break;
    const Option* option = option_in(list, word);
    if (option == nullptr) continue;
    place = fmt::format("the argument after {} and its value", dashed(option->name));
  }
  return UsageError(
      "{} is not an option: this command takes only options, and a value with spaces needs quotes",
      place);
}

/// `prefix` names the source of the values in messages.
void apply(Option& option, const std::vector<std::string>& values, const std::string& prefix) {
  option.given = true;
  for (const std::string& value : values) must(option.set(value), prefix + option.name);
}

/// Values with a password have been refused; presentable() also removes a lone user name.
void add_words(const Option& option, const std::vector<std::string>& values,
               std::vector<std::string>& words) {
  if (option.effect == Effect::output && option.name != "config") return;
  for (const std::string& value : values) {
    if (option.flag) {
      words.push_back(dashed(option.name) + (value == "true" ? "" : "=" + value));
      continue;
    }
    if (!option.positional) words.push_back(dashed(option.name));
    words.push_back(presentable(value));
  }
}

}  // namespace

tl::expected<void, std::string> Option::set(const std::string& text) {
  std::vector<std::string> values{text};
  if (secret && text.starts_with('@')) {
    auto lines = read_secrets(text.substr(1));
    if (!lines) return tl::unexpected(std::move(lines.error()));
    if (lines->size() > 1 && !repeatable) {
      return tl::unexpected(
          fmt::format("{} has {} lines, but only one is allowed", text.substr(1), lines->size()));
    }
    values = *std::move(lines);
  } else if (comma_separated) {
    values = results::split_at_commas(text);
  }
  return parse(values);
}

std::string Option::key() const {
  std::string key = name;
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string Option::description() const {
  std::string text = help;
  const bool says_so = help.find("repeatable") != std::string::npos;
  if (repeatable && !positional && !says_so) text += "; repeatable";
  if (secret) text += "; @FILE reads it from a file";
  if (!default_text.empty()) text += fmt::format(" (default: {})", default_text);
  return text;
}

Option& OptionList::add_flag(std::string_view name, bool& place, std::string help) {
  Option option{.flag = true};
  option.parse =
      [&place](const std::vector<std::string>& texts) -> tl::expected<void, std::string> {
    for (const std::string& text : texts) {
      if (text != "true" && text != "false") {
        return tl::unexpected(fmt::format("\"{}\" is not true or false", text));
      }
      place = text == "true";
    }
    return {};
  };
  option.value = [&place] { return place; };
  return insert(name, "", std::move(option), std::move(help));
}

Option& OptionList::insert(std::string_view name, std::string_view value_name, Option option,
                           std::string help, std::string default_text) {
  option.name = name;
  option.value_name = value_name;
  option.help = std::move(help);
  option.default_text = std::move(default_text);
  option.group = group_;
  const bool known = std::ranges::find(options_, name, &Option::name) != options_.end();
  if (known || (takes_ && !takes_(name))) return not_taken_ = std::move(option);
  return options_.emplace_back(std::move(option));
}

void OptionList::take(const std::function<bool(std::string_view)>& takes,
                      const std::function<void()>& declare) {
  takes_ = takes;
  declare();
  takes_ = nullptr;
}

const Option* OptionList::find(std::string_view name) const {
  const auto found = std::ranges::find(options_, name, &Option::name);
  return found == options_.end() || found->positional ? nullptr : &*found;
}

Option& OptionList::at(std::string_view name) {
  const auto found = std::ranges::find(options_, name, &Option::name);
  if (found == options_.end()) throw std::out_of_range(std::string(name));
  return *found;
}

bool OptionList::given(std::string_view name) const {
  const Option* option = find(name);
  return option != nullptr && option->given;
}

bool OptionList::only_in_environment(std::string_view name) const {
  const Option* option = find(name);
  return option != nullptr && option->from_environment;
}

void OptionList::read(std::span<const std::string> args) {
  // --help wins over mistakes, and is never the value of an option.
  const auto end = std::ranges::find(args, "--");
  const auto help = std::find_if(args.begin(), end, [](const std::string& argument) {
    return argument == "--help" || argument == "-h" || argument == "--help=all";
  });
  help_wanted_ = help != end;
  all_wanted_ = help_wanted_ && (*help == "--help=all" || (help + 1 != end && help[1] == "all"));
  if (help_wanted_) return;
  // CLI11 would take the next argument as the value of "--name=".
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (args[i].find('=') + 1 != args[i].size()) continue;
    if (const Option* option = option_in(*this, args[i])) throw value_missing(*option);
  }
  CLI::App app;
  define(app, options_);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // the last one first
  } catch (const CLI::ArgumentMismatch& error) {
    // Only the last argument can lack its value.
    const Option* option = option_in(*this, args.back());
    throw option != nullptr ? value_missing(*option) : UsageError("{}", error.what());
  } catch (const CLI::ParseError&) {  // its message may quote a secret
    throw UsageError("the arguments cannot be read (--help shows how options are written)");
  }
  for (const std::string& argument : app.remaining()) {
    if (argument == "--") continue;
    if (argument.starts_with('-')) throw unknown_option(options_, argument);
    throw stray_argument(*this, args, argument);
  }

  for (Option& option : options_) {
    const auto& values =
        app.get_option(option.positional ? option.value_name : dashed(option.name))->results();
    if (values.empty()) continue;
    check_values(*this, option, values);
    apply(option, values, "--");
    add_words(option, values, words_);
  }
  read_config();
  read_environment();
  check_outputs();
}

void OptionList::check_outputs() const {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* const name :
       {"workload", "history", "events", "report", "out", "record", "svg"}) {
    const Option* const option = find(name);
    const auto value = option == nullptr ? results::OptionValue() : option->value();
    const auto* const path = std::get_if<std::string>(&value);
    if (path == nullptr || path->empty()) continue;
    for (const auto& [other, its] : files) {
      if (!same_file(its, *path)) continue;
      throw UsageError("--{} and --{} must be different files: both are {}", other, name, *path);
    }
    files.emplace_back(name, *path);
  }
}

void OptionList::read_config() {
  const Option* config = find("config");
  if (config == nullptr || !config->given) return;
  const auto file = std::get<std::string>(config->value());
  const GivenValues from_file = read_config_file(file, options_, command_);
  for (Option& option : options_) {
    const auto values = from_file.find(option.name);
    if (option.given || values == from_file.end()) continue;
    apply(option, values->second, file + ": ");
  }
}

void OptionList::read_environment() {
  for (Option& option : options_) {
    if (!option.secret || !option.in_environment || option.given) continue;
    const std::string name = environment_name(option.name);
    const char* const text = std::getenv(name.c_str());
    if (text == nullptr || *text == '\0') continue;
    const std::vector<std::string> values = lines_with_values(text);
    if (values.size() > 1 && !option.repeatable) {
      throw UsageError("{} has {} lines, but only one is allowed", name, values.size());
    }
    apply(option, values, name + ": ");
    option.from_environment = true;
  }
}

std::string OptionList::help(std::string_view summary, std::string_view example) const {
  std::vector<Option> shown = options_;
  if (shown.size() > kManyOptions && !all_wanted_) {
    std::erase_if(shown, [](const Option& one) { return !one.usual && !one.positional; });
  }
  CLI::App app(fmt::format("Example: {}\n\n{}\n", example, summary), command_);
  define(app, shown);
  if (const std::size_t left = options_.size() - shown.size(); left > 0) {
    app.footer(fmt::format("{} more options: lockbench {} --help all", left, command_));
  }
  return app.help("lockbench");
}

OptionRecord OptionList::record() const {
  OptionRecord record;
  for (const Option& option : options_) {
    if (option.effect != Effect::figures) continue;
    const results::OptionValue value = option.value();
    const bool unset = std::holds_alternative<std::nullptr_t>(value);
    record.emplace(option.key(), unset ? option.value_if_unset : value);
  }
  return record;
}

bool same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // Without absolute(), the relative path of a file that does not exist yet stays relative.
  const auto path_of = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, ignored), ignored);
  };
  const fs::path path = path_of(one);
  return !path.empty() && path == path_of(other) && !fs::is_character_file(path, ignored);
}

// The types of option values.

tl::expected<std::int64_t, std::string> WholeNumber::parse(const std::string& text) const {
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= min && *number <= max) return *number;
  return tl::unexpected(fmt::format("\"{}\" is not a whole number from {} to {}", text, min, max));
}

ValueType<int> number_or_word(int max, std::string_view word) {
  const auto text = [=](int value) {
    return value == 0 ? std::string(word) : std::to_string(value);
  };
  return {.parse = [=](const std::string& given) -> tl::expected<int, std::string> {
            if (given == word) return 0;
            const auto number = parse_number<std::int64_t>(given);
            if (number && *number >= 1 && *number <= max) return static_cast<int>(*number);
            return tl::unexpected(fmt::format(
                "\"{}\" is neither a whole number from 1 to {} nor {}", given, max, word));
          },
          .text = text,
          .record = [=](int value) -> results::OptionValue {
            if (value == 0) return text(value);
            return std::int64_t{value};
          }};
}

ValueType<double> number(double min, double max) {
  return {
      .parse = [=](const std::string& text) -> tl::expected<double, std::string> {
        const auto number = parse_number<double>(text);
        if (number && std::isfinite(*number) && *number >= min && *number <= max) {
          return *number;
        }
        return tl::unexpected(fmt::format("\"{}\" is not a number from {} to {}", text, min, max));
      },
      .text = [](double value) { return fmt::format("{}", value); },
      .record = [](double value) { return value; }};
}

tl::expected<void, std::string> check_range(const std::string& text, Duration duration,
                                            Duration min, Duration max) {
  if (duration >= min && duration <= max) return {};
  return tl::unexpected(fmt::format("\"{}\" is too {}: {} to {} is allowed", text,
                                    duration < min ? "short" : "long", format_duration(min),
                                    format_duration(max)));
}

ValueType<Duration> duration(Duration min, Duration max) {
  return {.parse =
              [=](const std::string& text) {
                return parse_duration(text).and_then([&](Duration duration) {
                  return check_range(text, duration, min, max).map([&] { return duration; });
                });
              },
          .text = format_duration,
          .record = [](Duration value) { return seconds(value); }};
}

ValueType<std::string> path() {
  return {.parse = [](const std::string& text) -> tl::expected<std::string, std::string> {
            if (!text.empty() && text.find('\0') == std::string::npos) return text;
            return tl::unexpected<std::string>("expected the path of a file");
          },
          .text = [](const std::string& value) { return value; },
          .record = [](const std::string& value) -> results::OptionValue {
            if (value.empty()) return nullptr;
            return value;
          }};
}

ValueType<std::string> printable_text() {
  return parsed([](const std::string& text) -> tl::expected<std::string, std::string> {
    if (results::printable(text) == text) return text;
    return tl::unexpected<std::string>("must be printable UTF-8");
  });
}

ValueType<std::string> any_text() {
  const auto same = [](const std::string& text) { return text; };
  return {.parse = same, .text = same};
}

std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed) {
  return fmt::format("\"{}\" is not one of {}", text, fmt::join(allowed, ", "));
}

}  // namespace lockbench::cli
