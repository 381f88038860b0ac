#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockbench {

/// The whole text as a number; nothing if it is not a number, or out of range.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace lockbench
