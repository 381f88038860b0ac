#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/number.h"
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

inline redis::Reply status(std::string value) {
  return {.type = redis::Reply::Type::status, .text = std::move(value)};
}
inline redis::Reply ok() { return status("OK"); }
inline redis::Reply list_of(std::vector<redis::Reply> elements) {
  return {.type = redis::Reply::Type::array, .elements = std::move(elements)};
}
inline redis::Reply not_an_integer() {
  return error("ERR value is not an integer or out of range");
}

/// Of a command's or an error's name.
inline std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}
inline redis::Reply wrong_count(std::string_view name) {
  return error(fmt::format("ERR wrong number of arguments for '{}' command", lower(name)));
}

/// Redis takes only the form that it would write itself.
inline std::optional<std::int64_t> to_integer(std::string_view word) {
  const auto value = parse_number<std::int64_t>(word);
  return value && std::to_string(*value) == word ? value : std::nullopt;
}

/// In the Redis protocol, as a server sends it.
inline void append_reply(std::string& out, const redis::Reply& reply) {
  using Type = redis::Reply::Type;
  const auto line = [&out](char mark, std::string_view rest) {
    (out += mark).append(rest).append("\r\n");
  };
  switch (reply.type) {
    case Type::nil:
      return line('$', "-1");
    case Type::status:
      return line('+', reply.text);
    case Type::error:
      return line('-', reply.text);
    case Type::integer:
      return line(':', std::to_string(reply.integer));
    case Type::string:
      line('$', std::to_string(reply.text.size()));
      out.append(reply.text).append("\r\n");
      return;
    case Type::array:
      line('*', std::to_string(reply.elements.size()));
      for (const redis::Reply& element : reply.elements) append_reply(out, element);
  }
}

/// Commands and their options may be in small letters.
inline bool equal_words(std::string_view word, std::string_view upper) {
  return std::ranges::equal(word, upper, {}, [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
}

}  // namespace lockbench::simulate
