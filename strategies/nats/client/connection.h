#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/nats/client/messages.h"
#include "strategies/store.h"
#include "strategies/transport/socket.h"
#include "strategies/url.h"

namespace lockbench::nats {

/// One server. tls:// means TLS, with a query as in TlsSettings.
using Endpoint = Url;
/// As parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

/// One connection to one server, used by one thread. Constructing it does not connect; a request
/// connects first if there is no connection, within the command timeout. After a failure the
/// connection is closed, and the next request reconnects. Reports every request to its Env. After a
/// stop, an answer has a part of Timeouts::after_stop to come.
class Connection {
 public:
  Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env);

  StoreResult<void> connect(const std::stop_token& stop = {});

  /// A message that is answered by one message.
  struct Request {
    std::string_view name;  ///< for the Env
    std::string_view key;   ///< likewise
    std::string subject;
    std::string headers{};  ///< each with its "\r\n"
    std::string_view payload{};
  };
  /// A refusal by JetStream is an answer; an error of the server is `rejected`.
  StoreResult<Answer> ask(const Request& request, const std::stop_token& stop = {});

  /// Once connected: subscribes to a subject for what consumers send to this connection.
  StoreResult<std::string> heard_subject();
  /// The next message of a consumer, also one that came before an answer, or an error; nothing if
  /// none comes within `longest`, or after a stop.
  StoreResult<std::optional<Message>> hear(Duration longest, const std::stop_token& stop);

  /// What the server said when it was connected.
  const ServerInfo& server() const { return server_; }
  void close() noexcept { transport_.reset(); }
  const std::string& display() const { return display_; }
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

 private:
  StoreResult<void> open(const std::stop_token& stop, TimePoint end);
  StoreResult<void> log_in(const std::stop_token& stop, TimePoint end);
  /// Changes the transport to TLS.
  StoreResult<void> secure(const std::stop_token& stop, TimePoint end);
  StoreResult<Answer> exchange(const Request& request, const std::stop_token& stop);
  StoreResult<void> send(std::string_view bytes, TimePoint end);
  /// The next message of this kind, or an error or payload. Answers each PING before it.
  StoreResult<Message> next(Message::Kind wanted, const std::stop_token& stop, TimePoint end);
  /// The same; nothing if none comes before `end`, or after a stop.
  StoreResult<std::optional<Message>> await(Message::Kind wanted, const std::stop_token& stop,
                                            TimePoint end);

  CommandInfo info(std::string_view name, std::string_view key) const {
    return {.store = "nats", .endpoint = display_, .name = name, .key = key};
  }

  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  TimePoint used_at_{};
  ServerInfo server_;
  std::string received_;       ///< bytes not used yet
  std::string inbox_;          ///< the beginning of the subjects of answers
  bool hears_ = false;         ///< is subscribed to what consumers send
  std::deque<Message> heard_;  ///< before an answer
  std::uint64_t asked_ = 0;
};

}  // namespace lockbench::nats
