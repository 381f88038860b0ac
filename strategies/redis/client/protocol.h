#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "strategies/redis/client/connection.h"

struct redisReader;

namespace lockbench::redis {

/// Appends the command as the server wants it.
void append_command(std::string& out, Command command);

/// The word that is the command's key, if it has one: what meters and faults may want to know.
std::string_view key_of(Command command);

/// Takes answers out of a stream of bytes: hiredis reads the protocol, the bytes travel over a
/// Transport, as a hiredis context is dead after a time-out and knows neither stops nor deadlines.
class ReplyReader {
 public:
  ReplyReader();

  void feed(std::span<const char> bytes);
  /// The next whole answer; nothing until more bytes are fed. The error is the protocol's.
  tl::expected<std::optional<Reply>, std::string> next();
  /// Whether some were fed that no answer has used yet.
  bool holds_bytes() const;

 private:
  struct Deleter {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Deleter> reader_;
};

/// Whether the user is known, but may not use this command.
bool is_no_permission(const StoreError& error);
/// Whether a replica was asked to write.
bool is_read_only(const StoreError& error);
/// Whether this answer to ROLE is a master's.
bool is_master(const Reply& role);
/// Of a server that its sentinels call the master, and that is none.
StoreError not_the_master(const Endpoint& endpoint);

/// AUTH and SELECT, and a look at the ROLE of what sentinels call the master, before anything else
/// on a new connection; `exchange` sends one command and returns its answer. Errors tell no secret.
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
    // Who may not ask may lock all the same: that it is a replica shows at the first write.
    if (role && !is_master(*role)) return tl::unexpected(not_the_master(endpoint));
  }
  if (endpoint.database != 0) {
    const std::string number = std::to_string(endpoint.database);
    const std::vector<std::string_view> select{"SELECT", number};
    if (auto done = exchange(Command(select)); !done) return tl::unexpected(done.error());
  }
  return {};
}

/// A refusal of AUTH may quote the command, secrets included: only the error's name is told.
std::string without_secret(std::string_view refusal);

}  // namespace lockbench::redis
