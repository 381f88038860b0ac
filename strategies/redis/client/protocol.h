#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "strategies/redis/client/connection.h"
#include "strategies/transport/socket.h"

namespace lockbench::redis {

/// Appends the command in the Redis protocol.
void append_command(std::string& out, Command command);

/// The argument that is the command's key, if it has one: for the Env.
std::string_view key_of(Command command);

/// Reads answers (RESP2) from a stream of bytes. Bounds its memory: an answer of more than 1 MiB,
/// or nested deeper than any command's, is an error.
class ReplyReader {
 public:
  void feed(std::span<const char> bytes) {
    bytes_.erase(0, std::exchange(used_, 0));
    bytes_.append(bytes.data(), bytes.size());
  }
  /// The next complete answer; nothing until more bytes are fed. The error is a protocol error, and
  /// stays.
  tl::expected<std::optional<Reply>, std::string> next();
  /// Whether there are bytes that no answer has used yet.
  bool holds_bytes() const { return used_ < bytes_.size(); }
  /// False: more bytes must come before next() can return an answer.
  bool may_hold_answer() const { return bytes_.size() - used_ >= needed_; }

 private:
  std::string bytes_;
  std::size_t used_ = 0;    ///< bytes of earlier answers
  std::size_t needed_ = 1;  ///< bytes after those before it is worth looking
};

// Answers of Redis's commands, and of the scripts of several strategies.

/// "it answered SET with the integer 1, expected OK or nil"
std::string describe_answer(std::string_view name, const Reply& reply, std::string_view expected);

/// An integer within these bounds.
std::optional<std::int64_t> number_in(const Reply& reply, std::int64_t least, std::int64_t most);

inline constexpr Form<bool> kOk{"OK", [](const Reply& reply) {
                                  return reply.is_text("OK") ? std::optional(true) : std::nullopt;
                                }};
/// SET with NX: whether it was set.
inline constexpr Form<bool> kOkOrNil{
    "OK or nil",
    [](const Reply& reply) { return reply.is_nil() ? std::optional(false) : kOk.read(reply); }};
/// Whether something was changed.
inline constexpr Form<bool> kFlag{"0 or 1", [](const Reply& reply) {
                                    const auto flag = number_in(reply, 0, 1);
                                    return flag ? std::optional(*flag == 1) : std::nullopt;
                                  }};
inline constexpr Form<std::int64_t> kCount{
    "a count", [](const Reply& reply) {
      return number_in(reply, 0, std::numeric_limits<std::int32_t>::max());
    }};
inline constexpr Form<std::string> kText{
    "text", [](const Reply& reply) {
      const bool is_text = reply.type == Reply::Type::string || reply.type == Reply::Type::status;
      return is_text ? std::optional(reply.text) : std::nullopt;
    }};
inline constexpr Form<std::optional<std::string>> kTextOrNil{
    "text or nil", [](const Reply& reply) -> std::optional<std::optional<std::string>> {
      if (reply.is_nil()) return std::optional<std::string>();
      auto text = kText.read(reply);
      if (!text) return std::nullopt;
      return text;
    }};

/// A message to a subscriber, or the error.
tl::expected<Push, std::string> read_push(const Reply& reply);

/// By the first word of an error reply.
StoreError::Code error_code(std::string_view text);

/// The next answer from the server; all its pieces share `longest`. Nothing if it does not come in
/// that time; it can be read later. The error says why none will come.
tl::expected<std::optional<Reply>, std::string> read_reply(Transport& transport,
                                                           ReplyReader& reader, Duration longest,
                                                           const std::stop_token& stop);

/// Sends one command and waits for its answer; `timeout` is for each step. The error says why there
/// is none. An error reply is an answer.
tl::expected<Reply, std::string> exchange_once(Transport& transport, ReplyReader& reader,
                                               Command command, Duration timeout,
                                               const std::stop_token& stop);

/// The value of "name:value\r\n" in the answer to INFO; empty if it is missing.
std::string info_field(std::string_view info, std::string_view name);

/// Connects to the endpoint's server. If it has sentinels, asks them for the master and believes
/// the first that knows it (redis.io, "Guidelines for Redis clients with support for Redis
/// Sentinel"): `timeouts.answer` is for all of them, and again for the server. Their answer may be
/// out of date, so greet() checks the server's role. The error says why there is no connection,
/// without naming the endpoint.
tl::expected<std::unique_ptr<Transport>, std::string> connect_server(
    const Endpoint& endpoint, const Timeouts& timeouts, const std::stop_token& stop,
    Dialer& dialer = Dialer::real());

/// Begins a new connection: AUTH, SELECT, and ROLE if sentinels named the master; `timeout` is for
/// each step. The commands are reported to `env` unless it is null, with their first word only, as
/// the others may be secret. Errors contain no secret; they are of kind `rejected` for an error
/// reply, otherwise `not_sent`.
StoreResult<void> greet(const Endpoint& endpoint, Transport& transport, ReplyReader& reader,
                        Duration timeout, const std::stop_token& stop, Env* env);

}  // namespace lockbench::redis
