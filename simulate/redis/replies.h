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
