#pragma once

#include <poll.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/transport/socket.h"
#include "strategies/url.h"

namespace lockbench::redis {

/// One Redis server, by TCP or a unix socket, the current master that these sentinels name, or the
/// servers of a cluster. User and password are for the servers, and for sentinels that ask for one.
/// With rediss://, rediss+sentinel:// or rediss+cluster:// all of these speak TLS, with a query as
/// in TlsSettings.
struct Endpoint {
  std::string host;  ///< empty for a unix socket
  int port = 6379;
  std::string path;  ///< of a unix socket
  std::string user, password;
  int database = 0;
  std::vector<HostPort> sentinels{};  ///< asked for host and port; if empty, those above are used
  std::string master{};               ///< the sentinels' name for it
  std::shared_ptr<const TlsSettings> tls{};  ///< null: none
  std::vector<HostPort> cluster{};           ///< some of its servers, which know the others
  bool sharded = false;                      ///< one server of a cluster

  /// "127.0.0.1:6379", "unix:/run/redis.sock", "10.0.0.1:26379,10.0.0.2:26379/name" or
  /// "10.0.0.1:6379,10.0.0.2:6379": without credentials, for people, files and metrics.
  std::string display() const;
  /// As display(), with the database unless it is 0: "127.0.0.1:6379/1",
  /// "unix:/run/redis.sock?db=1".
  std::string display_with_database() const;
  /// For an endpoint without sentinels or a cluster.
  SocketAddress address() const { return {.host = host, .port = port, .path = path}; }
};

/// As parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url);

/// A server's answer.
struct Reply {
  enum class Type { nil, status, error, integer, string, array };

  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text;                                 ///< of a status, an error or a string
  StoreError::Code code = StoreError::Code::other;  ///< of an error
  std::vector<Reply> elements;

  bool is_nil() const { return type == Type::nil; }
  bool is_integer(std::int64_t value) const { return type == Type::integer && integer == value; }
  bool is_text(std::string_view value) const {
    return (type == Type::status || type == Type::string) && text == value;
  }
};

/// How the answers to a command are read.
template <class T>
struct Form {
  std::string_view expected;                     ///< for messages: "OK or nil"
  std::optional<T> (*read)(const Reply& reply);  ///< nothing: another answer
};

/// A command's words; the views must live only until it is queued.
using Command = std::span<const std::string_view>;
using WordList = std::initializer_list<std::string_view>;

/// A Lua script from a .lua file beside the strategies, embedded at build time.
struct Script {
  std::string_view name;
  std::string_view source;
  std::string_view sha1;
};

/// One connection to one server, used by one thread. Constructing it does not connect; a command
/// connects first if there is no connection, within the command timeout. After a failure the
/// connection is closed, commands under way count as unanswered, and the next command reconnects.
/// If the server has closed a connection that was idle for more than a second, so does that
/// command. Reports every command to its Env. Error replies are failures of kind `rejected`.
class Connection {
 public:
  virtual ~Connection() = default;

  /// The server, without credentials.
  virtual const std::string& display() const = 0;

  virtual StoreResult<void> connect(const std::stop_token& stop = {}) = 0;
  /// Begins or continues to connect, for at most `longest` (zero: does not wait). True: connected;
  /// false: still connecting.
  virtual StoreResult<bool> connect_within(Duration longest, const std::stop_token& stop = {}) = 0;

  /// Queues a command; all queued commands are sent together by flush() or the next receive().
  /// `name` is reported to the Env instead of the first word. `blocks_for`: how long the command
  /// waits at the server before it answers nil. Never fails: the command's receive() reports the
  /// failure.
  virtual void queue(Command command, std::string_view name = {}, Duration blocks_for = {}) = 0;
  virtual void flush(const std::stop_token& stop = {}) = 0;

  /// The answer to the oldest unanswered command. Call it once for each command. After a stop it
  /// soon gives up an answer that does not come.
  virtual StoreResult<Reply> receive(const std::stop_token& stop = {}) = 0;

  /// The same, but returns nothing if the answer does not come within `longest`; it can be received
  /// later. Does not flush.
  virtual std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                           const std::stop_token& stop = {}) = 0;

  /// To poll for input while an answer is awaited; -1 if it can be received without waiting.
  virtual int descriptor() const = 0;

  /// Grows with every new connection: WAIT covers the writes of the same connection only.
  virtual std::uint64_t times_connected() const { return 1; }

  /// The server of a cluster that has this key, or the cluster while that is unknown; nothing
  /// without a cluster.
  virtual std::optional<Endpoint> server_of(std::string_view /*key*/) const { return std::nullopt; }

  virtual void close() noexcept = 0;

  void queue(WordList command) { queue(Command(command.begin(), command.size())); }
  /// EVALSHA, or with `in_full` EVAL, which also works if the server does not know the script.
  void queue(const Script& script, bool in_full, WordList keys, WordList args);

  /// One command, one round trip.
  StoreResult<Reply> call(Command command, const std::stop_token& stop = {}) {
    queue(command);
    return receive(stop);
  }
  StoreResult<Reply> call(WordList command, const std::stop_token& stop = {}) {
    return call(Command(command.begin(), command.size()), stop);
  }
  /// EVALSHA, then EVAL if the server does not know the script.
  StoreResult<Reply> call(const Script& script, WordList keys, WordList args,
                          const std::stop_token& stop = {});

  /// The answer to the command with this name. Any answer that is not of this form closes the
  /// connection and counts as unanswered: it may belong to another command.
  template <class T>
  StoreResult<T> read(const Form<T>& form, std::string_view name, StoreResult<Reply> reply) {
    if (!reply) return tl::unexpected(std::move(reply.error()));
    if (std::optional<T> value = form.read(*reply)) return *std::move(value);
    return tl::unexpected(not_understood(form.expected, name, *reply));
  }
  template <class T>
  StoreResult<T> call(const Form<T>& form, WordList command, const std::stop_token& stop = {}) {
    return read(form, *command.begin(), call(command, stop));
  }
  template <class T>
  StoreResult<T> call(const Form<T>& form, const Script& script, WordList keys, WordList args,
                      const std::stop_token& stop = {}) {
    return read(form, script.name, call(script, keys, args, stop));
  }

 private:
  StoreError not_understood(std::string_view expected, std::string_view name, const Reply& reply);
};

/// A message that the server pushes to a subscriber.
struct Push {
  enum class Kind { subscribed, unsubscribed, message };
  Kind kind = Kind::message;
  std::string channel;
};

/// A connection for messages: one client receives, and any thread may subscribe meanwhile. A
/// failure closes it, with all subscriptions, until connect() is called again. Reports its commands
/// to its Env, one at a time. On a server of a cluster it uses sharded channels, whose messages
/// stay on that server; a channel that is another server's is answered with `unsubscribed`.
class Subscriber {
 public:
  virtual ~Subscriber() = default;

  /// By the receiver. Does nothing if there is a connection.
  virtual StoreResult<void> connect(const std::stop_token& stop) = 0;
  /// Thread-safe. Does not wait. A Push confirms it.
  virtual StoreResult<void> subscribe(const std::string& channel) = 0;
  /// The same for many; only for the receiver. Waits, at most the command timeout, until all are
  /// sent.
  virtual StoreResult<void> subscribe_to_all(std::span<const std::string> channels) {
    for (const std::string& channel : channels) {
      if (auto subscribed = subscribe(channel); !subscribed) return subscribed;
    }
    return {};
  }
  virtual StoreResult<void> unsubscribe(const std::string& channel) = 0;
  /// The next push; nothing if none comes within `longest`. A stop ends the wait.
  virtual StoreResult<std::optional<Push>> receive(Duration longest,
                                                   const std::stop_token& stop) = 0;
};

/// Makes the connections of one run. Tests and faults can replace it.
class ConnectionFactory {
 public:
  virtual ~ConnectionFactory() = default;
  /// Thread-safe. `env` must outlive the connection.
  virtual std::unique_ptr<Connection> make(const Endpoint& endpoint, const Timeouts& timeouts,
                                           Env& env) = 0;
  /// As make().
  virtual std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint,
                                                      const Timeouts& timeouts, Env& env) = 0;
  /// As Carrier::poll(), for descriptors of its connections.
  virtual void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) {
    Dialer::real().poll(descriptors, longest, stop);
  }
};

/// Connections over TCP, TLS or a unix socket, or over those that `dialer` opens; it must outlive
/// them.
std::unique_ptr<ConnectionFactory> make_connection_factory_on(Dialer& dialer);
std::unique_ptr<ConnectionFactory> make_connection_factory();

}  // namespace lockbench::redis
