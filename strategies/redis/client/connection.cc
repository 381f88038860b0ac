#include "strategies/redis/client/connection.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "strategies/redis/client/answers.h"

namespace lockbench::redis {

StoreResult<Reply> Connection::call(const Script& script,
                                    std::initializer_list<std::string_view> keys,
                                    std::initializer_list<std::string_view> args,
                                    const std::stop_token& stop) {
  // Of any script here; allocating them for each call would show.
  constexpr std::size_t kMostWords = 16, kFixed = 3;
  const std::string key_count = std::to_string(keys.size());
  std::array<std::string_view, kMostWords> words{"EVALSHA", script.sha1, key_count};
  if (kFixed + keys.size() + args.size() > kMostWords) throw std::length_error("a long command");
  const auto behind_keys = std::copy(keys.begin(), keys.end(), words.begin() + kFixed);
  const auto end = std::copy(args.begin(), args.end(), behind_keys);
  const Command command(words.begin(), end);

  queue(command, script.name);
  StoreResult<Reply> reply = receive(stop);
  if (reply || reply.error().message.find("NOSCRIPT") == std::string::npos) return reply;
  words[0] = "EVAL";
  words[1] = script.source;
  queue(command, script.name);
  return receive(stop);
}

StoreError Connection::not_understood(std::string_view expected, std::string_view name,
                                      const Reply& reply) {
  close();
  return {StoreError::Kind::unanswered, display() + ": " + describe_answer(name, reply, expected)};
}

}  // namespace lockbench::redis
