#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/socket.h"

struct redisReader;

namespace lockbench::redis {

/// Appends the command in the Redis protocol.
void append_command(std::string& out, Command command);

/// The argument that is the command's key, if it has one: for the Env.
std::string_view key_of(Command command);

/// Reads answers from a stream of bytes. hiredis parses the protocol; the bytes come from a
/// Transport, as a hiredis context cannot be used after a timeout and supports neither stops nor
/// deadlines.
class ReplyReader {
 public:
  ReplyReader();

  void feed(std::span<const char> bytes);
  /// The next complete answer; nothing until more bytes are fed. The error is a protocol error.
  tl::expected<std::optional<Reply>, std::string> next();
  /// Whether there are bytes that no answer has used yet.
  bool holds_bytes() const;

 private:
  struct Deleter {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Deleter> reader_;
};

/// Sends one command and waits for its answer; `timeout` is for each step. The error says why there
/// is none. An error reply is an answer.
tl::expected<Reply, std::string> exchange_once(Transport& transport, ReplyReader& reader,
                                               Command command, Duration timeout,
                                               const std::stop_token& stop);

/// The server refused the command because the user lacks the permission.
bool is_no_permission(const StoreError& error);
/// The server refused to write because it is a replica.
bool is_read_only(const StoreError& error);
/// Whether this answer to ROLE is that of a master.
bool is_master(const Reply& role);
/// For a server that its sentinels call the master although it is not.
StoreError not_the_master(const Endpoint& endpoint);

/// What a new connection begins with: AUTH, SELECT, and ROLE where sentinels named the master.
/// `exchange` sends one command and returns its answer. Errors contain no secret.
template <class Exchange>
StoreResult<void> greet(const Endpoint& endpoint, Exchange&& exchange) {
  if (!endpoint.password.empty()) {
    std::vector<std::string_view> auth{"AUTH"};
    if (!endpoint.user.empty()) auth.push_back(endpoint.user);
    auth.push_back(endpoint.password);
    if (auto done = exchange(Command(auth)); !done) return tl::unexpected(done.error());
  }
  if (!endpoint.sentinels.empty()) {
    const std::vector<std::string_view> ask_role{"ROLE"};
    const StoreResult<Reply> role = exchange(Command(ask_role));
    if (!role && !is_no_permission(role.error())) return tl::unexpected(role.error());
    // Without the permission to ask, a replica shows at the first write.
    if (role && !is_master(*role)) return tl::unexpected(not_the_master(endpoint));
  }
  if (endpoint.database != 0) {
    const std::string number = std::to_string(endpoint.database);
    const std::vector<std::string_view> select{"SELECT", number};
    if (auto done = exchange(Command(select)); !done) return tl::unexpected(done.error());
  }
  return {};
}

/// The error code of a refused AUTH only, as the message may quote the command with its secrets.
std::string without_secret(std::string_view refusal);

}  // namespace lockbench::redis
