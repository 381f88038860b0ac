#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <concepts>
#include <type_traits>

#include "cli/options/option.h"
#include "strategies/duration.h"

namespace lockbench::cli {

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

/// Any text.
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

/// One of a few names.
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

}  // namespace lockbench::cli
