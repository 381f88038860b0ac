#include "strategies/redis/client/connection.h"

#include "strategies/redis/client/answers.h"

namespace lockbench::redis {

StoreResult<Reply> Connection::call(const Script& script,
                                    std::initializer_list<std::string_view> keys,
                                    std::initializer_list<std::string_view> args,
                                    const std::stop_token& stop) {
  const std::string key_count = std::to_string(keys.size());
  std::vector<std::string_view> command{"EVALSHA", script.sha1, key_count};
  command.insert(command.end(), keys);
  command.insert(command.end(), args);

  queue(command, script.name);
  StoreResult<Reply> reply = receive(stop);
  if (reply || reply.error().message.find("NOSCRIPT") == std::string::npos) return reply;
  command[0] = "EVAL";
  command[1] = script.source;
  queue(command, script.name);
  return receive(stop);
}

StoreError Connection::not_understood(std::string_view expected, std::string_view name,
                                      const Reply& reply) {
  close();
  return {StoreError::Kind::unanswered, display() + ": " + describe_answer(name, reply, expected)};
}

}  // namespace lockbench::redis
