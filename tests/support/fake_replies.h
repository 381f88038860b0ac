#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/scripts.h"

namespace lockbench::redis {

// What FakeRedis says, and the scripts that it knows.

inline Reply integer(std::int64_t value) {
  Reply reply;
  reply.type = Reply::Type::integer;
  reply.integer = value;
  return reply;
}

inline Reply text(Reply::Type type, std::string value) {
  Reply reply;
  reply.type = type;
  reply.text = std::move(value);
  return reply;
}

inline Reply ok() { return text(Reply::Type::status, "OK"); }
inline Reply error(std::string message) {
  const StoreError::Code code = error_code(message);
  Reply reply = text(Reply::Type::error, std::move(message));
  reply.code = code;
  return reply;
}

inline bool is_script(const std::vector<std::string>& command) {
  return command[0] == "EVAL" || command[0] == "EVALSHA";
}

/// The script that EVAL or EVALSHA names; null if it is none of ours.
inline const Script* script_of(const std::vector<std::string>& command) {
  for (const Script* script :
       {&scripts::release_if_token, &scripts::renew_if_token, &scripts::renew_numbered,
        &scripts::reentrant_acquire, &scripts::reentrant_release, &scripts::reentrant_renew,
        &scripts::fenced_acquire}) {
    if (command[1] == script->sha1 || command[1] == script->source) return script;
  }
  return nullptr;
}

}  // namespace lockbench::redis
