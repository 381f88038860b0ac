#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "strategies/redis/client/protocol.h"

namespace lockbench::simulate {

// What the files of the simulated Redis share.

inline redis::Reply integer(std::int64_t value) {
  return {.type = redis::Reply::Type::integer, .integer = value};
}
inline redis::Reply text(std::string_view value) {
  return {.type = redis::Reply::Type::string, .text = std::string(value)};
}
inline redis::Reply error(std::string message) {
  const StoreError::Code code = redis::error_code(message);
  return {.type = redis::Reply::Type::error, .text = std::move(message), .code = code};
}

/// Commands and their options may be in small letters.
inline bool equal_words(std::string_view word, std::string_view upper) {
  return std::ranges::equal(word, upper, {}, [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
}

}  // namespace lockbench::simulate
