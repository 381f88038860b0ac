#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lockbench {

/// The words for `value`, from a table in the order of its enumeration, which ends with kLast.
template <auto kLast, std::size_t kSize>
constexpr std::string_view word_of(const std::array<std::string_view, kSize>& words,
                                   decltype(kLast) value) {
  static_assert(kSize == static_cast<std::size_t>(kLast) + 1, "every enumerator needs its words");
  return words.at(static_cast<std::size_t>(value));
}

}  // namespace lockbench
