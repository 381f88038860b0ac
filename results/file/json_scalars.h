#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "results/file/model.h"

// The values of a result file that hold no others: what they must be, and between which bounds.
namespace lockbench::results::reading {

/// Beyond it not every program reads a whole number exactly; two thousand of them fit into 64 bits.
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 53;
/// Of seconds, rates and shares: such numbers fit into 64 bits.
inline constexpr double kMostNumber = 1e18;

using Scalar = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;

/// What is wrong with a value, as it follows its path; empty: nothing.
using Problem = std::string;

inline constexpr std::string_view kNotAnObject = "is not an object";

template <class T>
inline constexpr std::string_view kWrongType = kNotAnObject;
template <>
inline constexpr std::string_view kWrongType<bool> = "is neither true nor false";
template <>
inline constexpr std::string_view kWrongType<std::string> = "is not a text";
template <>
inline constexpr std::string_view kWrongType<std::uint64_t> = "is not a whole number of at least 0";
template <>
inline constexpr std::string_view kWrongType<int> = kWrongType<std::uint64_t>;
template <>
inline constexpr std::string_view kWrongType<double> = "is not a number";
template <>
inline constexpr std::string_view kWrongType<OptionValue> = "is not the value of an option";
template <class T>
inline constexpr std::string_view kWrongType<std::vector<T>> = "is not a list";
template <>
inline constexpr std::string_view kWrongType<Distribution::Bucket> = "is not a pair [upper, count]";
template <>
inline constexpr std::string_view kWrongType<NodeVotes> =
    "is not a list [node, granted, refused, failed]";

template <class T>
Problem wrong_type() {
  return Problem(kWrongType<T>);
}

inline Problem assign(Scalar& from, bool& to) {
  const auto* value = std::get_if<bool>(&from);
  if (value == nullptr) return wrong_type<bool>();
  to = *value;
  return {};
}

inline Problem assign(Scalar& from, std::string& to) {
  auto* value = std::get_if<std::string>(&from);
  if (value == nullptr) return wrong_type<std::string>();
  to = std::move(*value);
  return {};
}

inline Problem assign(Scalar& from, std::uint64_t& to) {
  const auto* value = std::get_if<std::uint64_t>(&from);
  if (value == nullptr) return wrong_type<std::uint64_t>();
  if (*value > kMostCount) return fmt::format("is too large: at most {} is read", kMostCount);
  to = *value;
  return {};
}

inline Problem assign(Scalar& from, int& to) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto* value = std::get_if<std::uint64_t>(&from);
  if (value == nullptr) return wrong_type<int>();
  if (*value > kMost) return fmt::format("is too large: at most {} is read", kMost);
  to = static_cast<int>(*value);
  return {};
}

inline Problem assign(Scalar& from, double& to) {
  if (const auto* real = std::get_if<double>(&from)) {
    to = *real;
  } else if (const auto* whole = std::get_if<std::uint64_t>(&from)) {
    to = static_cast<double>(*whole);
  } else if (const auto* negative = std::get_if<std::int64_t>(&from)) {
    to = static_cast<double>(*negative);
  } else if (std::holds_alternative<std::nullptr_t>(from)) {
    to = std::numeric_limits<double>::quiet_NaN();
  } else {
    return wrong_type<double>();
  }
  if (!(std::abs(to) > kMostNumber)) return {};
  return fmt::format("is too large: at most {:.0e} is read", kMostNumber);
}

inline Problem assign(Scalar& from, Verdict& to) {
  const auto* name = std::get_if<std::string>(&from);
  const auto* const known =
      name == nullptr ? kVerdicts.end() : std::find(kVerdicts.begin(), kVerdicts.end(), *name);
  if (known == kVerdicts.end()) return fmt::format("is none of {}", fmt::join(kVerdicts, ", "));
  to = static_cast<Verdict>(known - kVerdicts.begin());
  return {};
}

inline Problem assign(Scalar& from, OptionValue& to) {
  if (const auto* whole = std::get_if<std::uint64_t>(&from)) {
    if (*whole >> 63U != 0) return wrong_type<OptionValue>();
    to = static_cast<std::int64_t>(*whole);
    return {};
  }
  if (std::holds_alternative<double>(from)) return assign(from, to.emplace<double>());
  std::visit(
      [&to](const auto& value) {
        if constexpr (!std::is_same_v<decltype(value), const std::uint64_t&>) to = value;
      },
      from);
  return {};
}

}  // namespace lockbench::results::reading
