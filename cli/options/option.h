#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <exception>
#include <functional>
#include <span>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "results/file/model.h"
#include "results/tables/text.h"
#include "strategies/duration.h"

namespace lockbench::cli {

/// A mistake in the command line or the configuration, or a server that cannot be reached. The
/// message is one line that names it and says what is allowed. dispatch() shows it and ends.
class UsageError : public std::exception {
 public:
  template <class... Args>
  explicit UsageError(fmt::format_string<Args...> text, Args&&... args)
      : message_(fmt::format(text, std::forward<Args>(args)...)) {}

  /// May quote a NUL byte, where what() would end.
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// Returns the value, or throws the error as a UsageError that begins with `culprit`, such as the
/// option.
template <class T>
T must(tl::expected<T, std::string> result, std::string_view culprit = "") {
  if (!result) throw UsageError("{}{}{}", culprit, culprit.empty() ? "" : ": ", result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

using OptionRecord = std::map<std::string, results::OptionValue>;

/// What a value of an option can change. Results that differ in `figures` are not comparable, and
/// the result file records only these. A command that repeats a result leaves out `output`.
enum class Effect {
  figures,  ///< of a run
  command,  ///< only which runs there are, whether they pass, and the exit code
  output,   ///< only where they go, and how they are shown
};

/// One option of a command: `--name` on the command line, `name` in the TOML file, and `name` with
/// underscores in the result file's workload. Bound to a member of the command's options.
struct Option {
  std::string name{};  ///< without leading dashes
  std::string value_name{};
  std::string help{};
  std::string default_text{};               ///< as help shows it; empty: none
  std::string group{};                      ///< the heading under which help shows it
  std::vector<std::string_view> choices{};  ///< the words that a value may be; none: not so few
  bool flag = false;
  bool repeatable = false;
  bool comma_separated = false;  ///< a value may be a list; add() sets both for a vector
  bool positional = false;
  bool in_file = true;  ///< may also be a key of the TOML file
  /// A value may hold a password. Such a value is refused as an argument, which other users can
  /// see; "@FILE", the environment or the TOML file supplies it. No message shows it.
  bool secret = false;
  bool usual = false;          ///< among those that most people need: see OptionList::help
  bool in_environment = true;  ///< a secret may also be in the environment
  bool given = false;          ///< on the command line, in the file or in the environment
  bool from_environment = false;
  Effect effect = Effect::figures;

  /// Takes these values, or none: the error quotes the wrong one, without secrets, and says what is
  /// allowed.
  std::function<tl::expected<void, std::string>(const std::vector<std::string>&)> parse{};
  /// The current value: durations in seconds, URLs without secrets, null if unset.
  std::function<results::OptionValue()> value{};
  results::OptionValue value_if_unset = nullptr;  ///< recorded instead of null

  /// Parses a value as it was given: a list of values, or the "@FILE" of a secret.
  tl::expected<void, std::string> set(const std::string& text);
  /// Its key in the result file.
  std::string key() const;
  /// What help says about it, in one line.
  std::string description() const;
};

/// Marks an option as usual.
inline Option& usual(Option& option) {
  option.usual = true;
  return option;
}

/// How values of type T are read and written.
template <class T>
struct ValueType {
  std::function<tl::expected<T, std::string>(const std::string&)> parse;
  /// As on the command line, without secrets.
  std::function<std::string(const T&)> text;
  /// For the result file; null: `text`.
  std::function<results::OptionValue(const T&)> record{};
  /// A repeated value is ignored.
  bool unique = false;
  /// The words that a value may be, if they are few: help shows them. The views last.
  std::vector<std::string_view> choices{};
};

/// T of an optional<T> or vector<T>. An option sets the optional, and appends to the vector at each
/// mention.
template <class T>
struct ItemOf {
  using type = T;
};
template <class T>
struct ItemOf<std::optional<T>> {
  using type = T;
};
template <class T>
struct ItemOf<std::vector<T>> {
  using type = T;
};

/// The options of one command, bound to a struct that holds their values. The struct's `declare`
/// member adds them. The first option of a name wins: a command declares its own form before the
/// shared ones.
class OptionList {
 public:
  using Names = std::vector<std::string_view>;

  explicit OptionList(std::string_view command) : command_(command) {}

  /// Help shows the options that follow under this heading.
  void heading(std::string_view group) { group_ = group; }

  /// Adds an option that sets `place`, which outlives the list. The default is the value in
  /// `place`; help shows `default_text` instead, if given.
  template <class Place>
  Option& add(std::string_view name, std::string_view value_name, Place& place,
              const ValueType<typename ItemOf<Place>::type>& type, std::string help,
              std::string default_text = "");
  Option& add_flag(std::string_view name, bool& place, std::string help);

  /// Of the options that `declare` adds, only() takes those of these names, without() the others.
  void only(const Names& names, const std::function<void()>& declare) {
    take([&](auto name) { return std::ranges::find(names, name) != names.end(); }, declare);
  }
  void without(const Names& names, const std::function<void()>& declare) {
    take([&](auto name) { return std::ranges::find(names, name) == names.end(); }, declare);
  }

  const std::vector<Option>& all() const { return options_; }
  std::vector<Option>& all() { return options_; }
  /// Null for a positional argument, or if there is none of that name.
  const Option* find(std::string_view name) const;
  /// For changing its help. Throws if there is none of that name.
  Option& at(std::string_view name);
  bool given(std::string_view name) const;
  /// Whether neither the command line nor the file has it, but the environment.
  bool only_in_environment(std::string_view name) const;
  /// Refuses the option, if it is given, unless what it requires is there.
  void needs(std::string_view name, bool there, std::string_view required) const {
    if (given(name) && !there) throw UsageError("--{} requires {}", name, required);
  }

  /// Reads the arguments, the TOML file that they name, and secrets in the environment. The command
  /// line wins over the file, and the file over the environment.
  void read(std::span<const std::string> args);
  /// Whether the arguments ask for help; nothing else has been read then.
  bool help_wanted() const { return help_wanted_; }
  /// A command line that repeats this one: the command's name and the arguments, without passwords
  /// and without options that only say where output goes.
  const std::vector<std::string>& words() const { return words_; }
  /// What `lockbench COMMAND --help` prints. If there are many options, only the usual ones, unless
  /// the arguments ask for all: `--help all`.
  std::string help(std::string_view summary, std::string_view example) const;
  /// The options that can change figures.
  OptionRecord record() const;

 private:
  Option& insert(std::string_view name, std::string_view value_name, Option option,
                 std::string help, std::string default_text = "");
  void take(const std::function<bool(std::string_view)>& takes,
            const std::function<void()>& declare);
  void read_config();
  void read_environment();
  /// Refuses outputs of which one would replace another.
  void check_outputs() const;

  std::string command_;
  std::string group_ = "Options";
  std::vector<Option> options_;
  std::function<bool(std::string_view name)> takes_;  ///< null: all
  Option not_taken_;
  bool help_wanted_ = false, all_wanted_ = false;
  std::vector<std::string> words_{command_};
};

template <class Place>
Option& OptionList::add(std::string_view name, std::string_view value_name, Place& place,
                        const ValueType<typename ItemOf<Place>::type>& type, std::string help,
                        std::string default_text) {
  using Item = typename ItemOf<Place>::type;
  constexpr bool kList = std::is_same_v<Place, std::vector<Item>>;
  constexpr bool kOptional = std::is_same_v<Place, std::optional<Item>>;
  Option option{.repeatable = kList, .comma_separated = kList};
  option.parse = [&place,
                  type](const std::vector<std::string>& texts) -> tl::expected<void, std::string> {
    Place taken = place;
    for (const std::string& text : texts) {
      auto value = type.parse(text);
      if (!value) return tl::unexpected(std::move(value.error()));
      if constexpr (kList) {
        const auto same = [&](const Item& other) { return type.text(other) == type.text(*value); };
        if (!type.unique || std::ranges::none_of(taken, same)) taken.push_back(*std::move(value));
      } else {
        taken = *std::move(value);
      }
    }
    place = std::move(taken);
    return {};
  };
  option.value = [&place, type]() -> results::OptionValue {
    const auto record = [&](const Item& value) {
      return type.record ? type.record(value) : results::OptionValue(type.text(value));
    };
    if constexpr (kList) {
      if (place.empty()) return nullptr;
      return results::each_of(place, type.text);
    } else if constexpr (kOptional) {
      return place ? record(*place) : results::OptionValue(nullptr);
    } else {
      return record(place);
    }
  };
  if constexpr (!kList && !kOptional) {
    if (default_text.empty()) default_text = type.text(place);
  }
  option.choices = type.choices;
  if (!type.choices.empty()) help += fmt::format(": {}", fmt::join(type.choices, ", "));
  return insert(name, value_name, std::move(option), std::move(help), std::move(default_text));
}

// The types of option values, for OptionList::add.

/// A whole number from `min` to `max`, of any integer type.
struct WholeNumber {
  std::int64_t min, max;
  tl::expected<std::int64_t, std::string> parse(const std::string& text) const;

  template <std::integral T>
  operator ValueType<T>() const {  // NOLINT(google-explicit-constructor)
    return {.parse = [range = *this](const std::string& text) -> tl::expected<T, std::string> {
              return range.parse(text).map([](std::int64_t n) { return static_cast<T>(n); });
            },
            .text = [](T value) { return std::to_string(value); },
            .record = [](T value) { return static_cast<std::int64_t>(value); }};
  }
};
inline WholeNumber whole_number(std::int64_t min, std::int64_t max) { return {min, max}; }

/// A whole number from 1 to `max`, or `word`, which stands for 0.
ValueType<int> number_or_word(int max, std::string_view word);

ValueType<double> number(double min, double max);

ValueType<Duration> duration(Duration min, Duration max);

/// The error if `duration`, given as `text`, is outside the range.
tl::expected<void, std::string> check_range(const std::string& text, Duration duration,
                                            Duration min, Duration max);

/// The path of a file or directory. Its user checks that it can be opened.
ValueType<std::string> path();

ValueType<std::string> any_text();
/// As labels of metrics must be.
ValueType<std::string> printable_text();

/// The type that the function `parse` reads from a text and `text` writes.
template <class Parse, class Text>
auto parsed(Parse parse, Text text) {
  using T = typename std::invoke_result_t<Parse, const std::string&>::value_type;
  return ValueType<T>{.parse = std::move(parse), .text = std::move(text)};
}
/// A text that `parse` checks.
template <class Parse>
auto parsed(Parse parse) {
  return parsed(std::move(parse), [](const std::string& text) { return text; });
}

/// A list without duplicates.
template <class T>
ValueType<T> each_once(ValueType<T> type) {
  type.unique = true;
  return type;
}

/// "a is not one of b, c"
std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed);

template <class T>
ValueType<T> one_of(const std::vector<std::pair<std::string_view, T>>& choices) {
  const auto names = results::each_of(choices, [](const auto& choice) { return choice.first; });
  return {.parse = [choices, names](const std::string& text) -> tl::expected<T, std::string> {
            for (const auto& [name, value] : choices) {
              if (name == text) return value;
            }
            return tl::unexpected(not_one_of(text, names));
          },
          .text =
              [choices](const T& value) {
                for (const auto& [name, choice] : choices) {
                  if (choice == value) return std::string(name);
                }
                return std::string();
              },
          .choices = names};
}

// The TOML file, and other sources of values.

/// Values as text, by the name of their option.
using GivenValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Whether both paths lead to the same file, so that one output would replace the other. False for
/// /dev/null, which may take both.
bool same_file(const std::string& one, const std::string& other);

/// Reads a TOML file whose keys are the names of `options`. Keys in the command's own table win
/// over those outside of tables; tables of other commands are skipped. Values are checked later,
/// when they are applied. A UsageError names the file, the key and what is allowed.
GivenValues read_config_file(const std::string& path, const std::vector<Option>& options,
                             std::string_view command);

/// The lines that "@FILE" stands for, at least one. An error if other users can read the file.
tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path);

/// The lines that are not blank, without blanks around them.
std::vector<std::string> lines_with_values(const std::string& text);

// Texts that are shown.

/// The message as one line that is safe to show: without control characters, and with *** instead
/// of the credentials of every URL and the password of every DSN.
std::string presentable(std::string_view message);

/// Whether a URL or "key=value" settings contain a password.
bool holds_password(std::string_view text);

using results::did_you_mean;

}  // namespace lockbench::cli
