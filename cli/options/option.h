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
#include "strategies/duration.h"

namespace lockbench::cli {

/// A mistake in the command line or in the configuration, or a server that is not there, in one
/// line that names it and says what is allowed. It ends the command: dispatch() shows it.
class UsageError : public std::exception {
 public:
  template <class... Args>
  explicit UsageError(fmt::format_string<Args...> text, Args&&... args)
      : message_(fmt::format(text, std::forward<Args>(args)...)) {}

  /// May quote a NUL byte, at which what() ends.
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// The value; a UsageError if there is an error instead. `culprit`, such as the option, leads it.
template <class T>
T must(tl::expected<T, std::string> result, std::string_view culprit = "") {
  if (!result) throw UsageError("{}{}{}", culprit, culprit.empty() ? "" : ": ", result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

using OptionRecord = std::map<std::string, results::OptionValue>;

/// One option of a command: `--name` on the command line, `name` in the TOML file, and `name` with
/// underscores in the result file's workload. It is bound to a member of the command's options.
struct Option {
  std::string name{};  ///< without leading dashes
  std::string value_name{};
  std::string help{};
  std::string default_text{};  ///< as help shows it; empty: none
  std::string group{};         ///< the heading under which help shows it
  bool flag = false;
  bool repeatable = false;
  bool comma_separated =
      false;  ///< each value is a list; OptionList::add() sets it with the former
  bool positional = false;
  bool in_file = true;  ///< may also be a key of the TOML file
  /// A value may hold a password: then it is no argument, which other users see. The environment
  /// can give it too, "@FILE" stands for the lines of a file, and no message shows it.
  bool secret = false;
  bool given = false;  ///< on the command line or in the file

  /// Parses one value. Called once per value. The error quotes it, without secrets, and says what
  /// is allowed.
  std::function<tl::expected<void, std::string>(const std::string&)> parse{};
  /// The current value: durations in seconds, URLs without secrets, null if unset.
  std::function<results::OptionValue()> value{};
  results::OptionValue value_if_unset = nullptr;  ///< recorded in the place of null

  /// Parses a value as it was given: a list of values, or the "@FILE" of a secret.
  tl::expected<void, std::string> set(const std::string& text);
  /// Its key in the result file.
  std::string key() const;
};

/// How values of type T are written.
template <class T>
struct ValueType {
  std::function<tl::expected<T, std::string>(const std::string&)> parse;
  /// As on the command line, without secrets.
  std::function<std::string(const T&)> text;
  /// For the result file; null: `text`.
  std::function<results::OptionValue(const T&)> record{};
  /// A repeated value is ignored.
  bool unique = false;
  /// "memory, redis": help shows them.
  std::string choices{};
};

/// T of an option<T> or vector<T>, which an option fills with one value or with one per mention.
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
/// member adds them. What is added first wins: a command declares its own form of an option before
/// the shared ones.
class OptionList {
 public:
  using Names = std::vector<std::string_view>;

  explicit OptionList(std::string_view command) : command_(command) {}

  /// Help shows the options that follow under this heading.
  void heading(std::string_view group) { group_ = group; }

  /// Adds an option that sets `place`, which outlives the list. Its default is what `place` holds;
  /// `default_text` describes it where that is empty.
  template <class Place>
  Option& add(std::string_view name, std::string_view value_name, Place& place,
              const ValueType<typename ItemOf<Place>::type>& type, std::string help,
              std::string default_text = "");
  Option& add_flag(std::string_view name, bool& place, std::string help);

  /// Of the options that `declare` adds, takes those of these names, or the others.
  void only(const Names& names, const std::function<void()>& declare) {
    take([&](auto name) { return std::ranges::find(names, name) != names.end(); }, declare);
  }
  void without(const Names& names, const std::function<void()>& declare) {
    take([&](auto name) { return std::ranges::find(names, name) == names.end(); }, declare);
  }

  const std::vector<Option>& all() const { return options_; }
  std::vector<Option>& all() { return options_; }
  /// Null: there is none of that name.
  const Option* find(std::string_view name) const;
  /// To change what help says of it.
  Option& at(std::string_view name);
  bool given(std::string_view name) const;

  /// Reads the arguments, the TOML file that they name, and secrets in the environment; the command
  /// line wins, and then the file.
  void read(std::span<const std::string> args);
  /// Whether the arguments ask for help; nothing else has been read then.
  bool help_wanted() const { return help_wanted_; }
  /// The words that make the command do the same again: its name and what was given, without
  /// passwords, and without the options that only say where output goes.
  const std::vector<std::string>& words() const { return words_; }
  /// What `lockbench COMMAND --help` prints.
  std::string help(std::string_view summary, std::string_view example) const;
  OptionRecord record() const;

 private:
  Option& insert(std::string_view name, std::string_view value_name, Option option,
                 std::string help, std::string default_text = "");
  void take(const std::function<bool(std::string_view)>& takes,
            const std::function<void()>& declare);
  void read_config();
  void read_environment();

  std::string command_;
  std::string group_ = "Options";
  std::vector<Option> options_;
  std::function<bool(std::string_view name)> takes_;  ///< null: all
  Option not_taken_;
  bool help_wanted_ = false;
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
  option.parse = [&place, type](const std::string& text) -> tl::expected<void, std::string> {
    auto value = type.parse(text);
    if (!value) return tl::unexpected(std::move(value.error()));
    if constexpr (kList) {
      const auto same = [&](const Item& other) { return type.text(other) == type.text(*value); };
      if (type.unique && std::ranges::any_of(place, same)) return {};
      place.push_back(*std::move(value));
    } else {
      place = *std::move(value);
    }
    return {};
  };
  option.value = [&place, type]() -> results::OptionValue {
    const auto record = [&](const Item& value) {
      return type.record ? type.record(value) : results::OptionValue(type.text(value));
    };
    if constexpr (kList) {
      if (place.empty()) return nullptr;
      std::vector<std::string> texts;
      texts.reserve(place.size());
      for (const Item& item : place) texts.push_back(type.text(item));
      return texts;
    } else if constexpr (kOptional) {
      return place ? record(*place) : results::OptionValue(nullptr);
    } else {
      return record(place);
    }
  };
  if constexpr (!kList && !kOptional) {
    if (default_text.empty()) default_text = type.text(place);
  }
  if (!type.choices.empty()) help += ": " + type.choices;
  return insert(name, value_name, std::move(option), std::move(help), std::move(default_text));
}

// The types of option values, for OptionList::add.

/// A whole number from `min` to `max`, of whichever integer type.
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

/// A whole number from 1 to `max`, or a word, which is 0.
ValueType<int> number_or_word(int max, std::string_view word);

ValueType<double> number(double min, double max);

ValueType<Duration> duration(Duration min, Duration max);

/// The error if `duration`, given as `text`, is outside the range.
tl::expected<void, std::string> check_range(const std::string& text, Duration duration,
                                            Duration min, Duration max);

/// The path of a file or directory. Its user checks that it can be opened.
ValueType<std::string> path();

ValueType<std::string> any_text();

/// The type that `parse`, a function of a text, returns; `text` writes it.
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

/// A list in which each value stands once, however often it was given.
template <class T>
ValueType<T> each_once(ValueType<T> type) {
  type.unique = true;
  return type;
}

/// "a is not one of b, c"
std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed);

template <class T>
ValueType<T> one_of(const std::vector<std::pair<std::string_view, T>>& choices) {
  std::vector<std::string_view> names;
  names.reserve(choices.size());
  for (const auto& choice : choices) names.push_back(choice.first);
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
          .choices = fmt::format("{}", fmt::join(names, ", "))};
}

// The TOML file, and other places of values.

/// Values as text, by the name of their option.
using GivenValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Reads a TOML file whose keys are the names of `options`; those in the command's table, if it can
/// have one, win over those outside of tables, and the other tables are skipped. The values are
/// checked where they are applied. A UsageError names the file, the key and what is allowed.
GivenValues read_config_file(const std::string& path, const std::vector<Option>& options,
                             std::string_view command);

/// What the value "@FILE" stands for: the lines of a file that others cannot read, one at least.
tl::expected<std::vector<std::string>, std::string> read_secrets(const std::string& path);

/// The lines that are not blank, without blanks around them.
std::vector<std::string> lines_with_values(const std::string& text);

}  // namespace lockbench::cli
