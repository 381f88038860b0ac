#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/options/option.h"

namespace lockbench::cli {

/// The kinds of options that the table is made of. `access` is a generic lambda that leads to the
/// option's place: [](auto& options) -> auto& { return options.workload.clients; }.

template <class T>
struct Range {
  T min, max;
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
results::OptionValue number_value(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? number_value(*value) : results::OptionValue(nullptr);
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(value);
  } else {
    return static_cast<double>(value);
  }
}

/// " (8)": what help says of a default.
template <class T>
std::string default_note(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? default_note(*value) : std::string();
  } else {
    return fmt::format(" ({})", value);
  }
}

/// Nothing unless the whole text is a finite number.
template <class Number>
std::optional<Number> read_number(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

/// A whole or a broken number, as the range's type is.
template <class Number, class Access>
Option number_option(std::string_view name, std::string_view value_name, std::string_view help,
                     Range<Number> range, Access access) {
  constexpr bool kWhole = std::integral<Number>;
  Option option{.name = name, .value_name = value_name};
  const RunOptions defaults;
  option.help = std::string(help) + default_note(access(defaults));
  option.type = kWhole ? Option::Type::integer : Option::Type::number;
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    const auto number = read_number<Number>(text);
    if (!number || *number < range.min || *number > range.max) {
      return tl::unexpected(fmt::format("\"{}\" is not a {} from {} to {}", text,
                                        kWhole ? "whole number" : "number", range.min, range.max));
    }
    using Place = std::remove_cvref_t<decltype(access(options))>;
    if constexpr (kIsOptional<Place>) {
      access(options) = static_cast<typename Place::value_type>(*number);
    } else {
      access(options) = static_cast<Place>(*number);
    }
    return {};
  };
  option.get = [=](const RunOptions& options) { return number_value(access(options)); };
  return option;
}

/// The error if `duration` lies outside the range.
inline tl::expected<void, std::string> check_range(const std::string& text, Duration duration,
                                                   Range<Duration> range) {
  if (duration >= range.min && duration <= range.max) return {};
  return tl::unexpected(fmt::format("\"{}\" is too {}: {} to {} is allowed", text,
                                    duration < range.min ? "short" : "long",
                                    format_duration(range.min), format_duration(range.max)));
}

template <class Access>
Option duration_option(std::string_view name, std::string_view help, Range<Duration> range,
                       Access access) {
  const RunOptions defaults;
  Option option{.name = name, .value_name = "D"};
  option.help = fmt::format("{} ({})", help, format_duration(access(defaults)));
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    const auto duration = parse_duration(text);
    if (!duration) return tl::unexpected(duration.error());
    if (auto allowed = check_range(text, *duration, range); !allowed) return allowed;
    access(options) = *duration;
    return {};
  };
  option.get = [=](const RunOptions& options) { return seconds(access(options)); };
  return option;
}

/// Drawn anew for each section.
template <class Access>
Option distribution_option(std::string_view name, std::string_view help, Access access) {
  Option option{.name = name, .value_name = "D", .help = std::string(help) + " (0s)"};
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    const auto distribution = loadgen::DurationDistribution::parse(text);
    if (!distribution) {
      // Not every such message says what it is about.
      const bool quotes = distribution.error().find(text) != std::string::npos;
      return tl::unexpected(quotes ? distribution.error()
                                   : fmt::format("\"{}\": {}", text, distribution.error()));
    }
    access(options) = *distribution;
    return {};
  };
  option.get = [=](const RunOptions& options) -> results::OptionValue {
    const loadgen::DurationDistribution& distribution = access(options);
    // What is not one duration is told in words.
    const std::string text = distribution.to_string();
    if (const auto constant = parse_duration(text)) return seconds(*constant);
    return text;
  };
  return option;
}

template <class Value>
using Choices = std::vector<std::pair<std::string_view, Value>>;

template <class Value, class Access>
Option choice_option(std::string_view name, std::string_view help, Choices<Value> choices,
                     Access access) {
  std::vector<std::string_view> names;
  for (const auto& [choice, value] : choices) names.push_back(choice);
  const auto name_of = [choices](Value wanted) {
    for (const auto& [choice, value] : choices) {
      if (value == wanted) return choice;
    }
    return std::string_view();
  };
  const RunOptions defaults;
  Option option{.name = name, .value_name = "NAME"};
  option.help = fmt::format("{}: {} ({})", help, fmt::join(names, ", "), name_of(access(defaults)));
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    for (const auto& [choice, value] : choices) {
      if (choice != text) continue;
      access(options) = value;
      return {};
    }
    return tl::unexpected(fmt::format("\"{}\" is not one of {}", text, fmt::join(names, ", ")));
  };
  option.get = [=](const RunOptions& options) { return std::string(name_of(access(options))); };
  return option;
}

template <class Access>
Option flag_option(std::string_view name, std::string_view help, Access access) {
  Option option{.name = name, .value_name = "", .help = std::string(help)};
  option.type = Option::Type::flag;
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    if (text != "true" && text != "false") {
      return tl::unexpected(fmt::format("\"{}\" is not true or false", text));
    }
    access(options) = text == "true";
    return {};
  };
  option.get = [=](const RunOptions& options) { return access(options); };
  return option;
}

/// The path of a file. Whether it can be used is found out by whoever opens it.
template <class Access>
Option path_option(std::string_view name, std::string_view help, Access access) {
  Option option{.name = name, .value_name = "FILE", .help = std::string(help)};
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    if (text.empty() || text.find('\0') != std::string::npos) {
      return tl::unexpected(std::string("the path of a file is wanted"));
    }
    access(options) = text;
    return {};
  };
  option.get = [=](const RunOptions& options) -> results::OptionValue {
    if (access(options).empty()) return nullptr;
    return access(options);
  };
  return option;
}

}  // namespace lockbench::cli
