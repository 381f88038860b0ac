#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/transport/socket.h"

namespace lockbench::watch {

/// A connection on which the server speaks of itself, after commands such as SUBSCRIBE. For one
/// thread. After a failure it is closed, until connect() is called again. Reports its
/// commands to its Env.
class RedisFeed {
 public:
  RedisFeed(redis::Endpoint endpoint, Duration command_timeout, Env& env);

  /// Does nothing if there is a connection.
  StoreResult<void> connect(const std::stop_token& stop);
  /// One command and the first thing that the server says then, which is the answer as long as it
  /// has nothing to say of itself. An error reply is of kind `rejected`.
  StoreResult<redis::Reply> call(redis::Command command, const std::stop_token& stop);
  StoreResult<redis::Reply> call(std::initializer_list<std::string_view> command,
                                 const std::stop_token& stop) {
    return call(redis::Command(command.begin(), command.size()), stop);
  }
  /// What the server says next, an error reply included; nothing if it is silent for `longest`.
  /// A stop ends the wait.
  StoreResult<std::optional<redis::Reply>> next(Duration longest, const std::stop_token& stop);
  void close() noexcept;

 private:
  tl::unexpected<StoreError> broken(std::string_view why);

  const redis::Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  redis::ReplyReader reader_;
};

/// What a server that tracks keys sends to __redis__:invalidate.
struct Invalidation {
  bool all = false;  ///< every key, after FLUSHALL
  std::vector<std::string> keys;
};

/// A message of a channel or of a pattern.
struct Message {
  std::string channel, payload;
};

/// Nothing: it is something else.
std::optional<Invalidation> read_invalidation(const redis::Reply& reply);
std::optional<Message> read_message(const redis::Reply& reply);

}  // namespace lockbench::watch
