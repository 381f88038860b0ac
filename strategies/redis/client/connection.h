#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/redis/client/endpoint.h"

namespace lockbench::redis {

/// What a server answered.
struct Reply {
  enum class Type { nil, status, error, integer, string, array };

  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text;  ///< of a status, error or string
  std::vector<Reply> elements;

  bool is_nil() const { return type == Type::nil; }
  bool is_integer(std::int64_t value) const { return type == Type::integer && integer == value; }
  bool is_text(std::string_view value) const {
    return (type == Type::status || type == Type::string) && text == value;
  }
};

/// A command's words; the views need to live only until it is queued.
using Command = std::span<const std::string_view>;

/// A Lua script from a .lua file beside the strategies, embedded at build time.
struct Script {
  std::string_view name;
  std::string_view source;
  std::string_view sha1;
};

/// One connection to one server, used by one thread. Constructing it does not connect; whatever
/// needs the server connects first if there is no connection, within the command timeout. After a
/// failure the connection is closed, commands that were under way count as unanswered, and the next
/// one reconnects. Reports every command to its Env. Error replies of the server are failures of
/// kind `rejected`.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual StoreResult<void> connect(const std::stop_token& stop = {}) = 0;
  /// Begins to connect, or goes on with it, for at most `longest` (zero: does not wait): true once
  /// there is a connection, false while it is under way.
  virtual StoreResult<bool> connect_within(Duration /*longest*/, const std::stop_token& stop = {}) {
    return connect(stop).map([] { return true; });
  }

  /// Puts a command on its way; what is queued is sent together, with flush() or the next
  /// receive(). `name` is what the Env is told, if it is not the first word. `blocks_for`: the
  /// command waits at the server for so long before it answers nil. Never fails: whatever goes
  /// wrong is reported by the receive() that belongs to the command.
  virtual void queue(Command command, std::string_view name = {}, Duration blocks_for = {}) = 0;
  virtual void flush(const std::stop_token& stop = {}) = 0;

  /// The answer to the oldest queued command that has none yet. To be called once for each. A stop
  /// gives up an answer that does not come within 50 ms of it.
  virtual StoreResult<Reply> receive(const std::stop_token& stop = {}) = 0;

  /// The same, if the answer comes within `longest`; nothing if it does not: it is due as before,
  /// and the connection as good. Sends nothing.
  virtual std::optional<StoreResult<Reply>> receive_within(Duration longest,
                                                           const std::stop_token& stop = {}) = 0;

  /// To be polled for input while an answer is due; -1 if there is nothing to wait for, as the
  /// answer is known already.
  virtual int descriptor() const = 0;

  /// Grows with every new connection to the server: what one has written, another knows nothing of.
  virtual std::uint64_t times_connected() const { return 1; }

  virtual void close() noexcept = 0;

  /// One command, one round trip.
  StoreResult<Reply> call(Command command, const std::stop_token& stop = {}) {
    queue(command);
    return receive(stop);
  }
  StoreResult<Reply> call(std::initializer_list<std::string_view> command,
                          const std::stop_token& stop = {}) {
    return call(Command(command.begin(), command.size()), stop);
  }
  void queue(std::initializer_list<std::string_view> command) {
    queue(Command(command.begin(), command.size()));
  }

  /// A command that waits at the server, for at most `blocks_for`; nil if that was in vain.
  StoreResult<Reply> call_blocking(std::initializer_list<std::string_view> command,
                                   Duration blocks_for, const std::stop_token& stop) {
    queue(Command(command.begin(), command.size()), {}, blocks_for);
    return receive(stop);
  }

  /// EVALSHA, and EVAL where the server does not know the script (yet, or any more).
  StoreResult<Reply> call(const Script& script, std::initializer_list<std::string_view> keys,
                          std::initializer_list<std::string_view> args,
                          const std::stop_token& stop = {});
};

/// A connection that an answer is awaited from.
struct Watched {
  int descriptor = -1;
  bool ready = false;
};

/// Waits until one of these has input, for at most `longest`, and marks those that have it; a stop
/// ends it within 50 ms. Returns at once, with all marked, if a descriptor is -1.
void wait_for_any(std::span<Watched> watched, Duration longest, const std::stop_token& stop);

/// What the server pushes to a subscriber.
struct Push {
  enum class Kind { subscribed, unsubscribed, message };
  Kind kind = Kind::message;
  std::string channel;
};

/// A connection on which messages come in: one thread receives, any thread may subscribe meanwhile.
/// After a failure it is closed, with all subscriptions, until connect() is called again. Reports
/// its commands to its Env, one at a time.
class Subscriber {
 public:
  virtual ~Subscriber() = default;

  /// On the receiving thread. Does nothing if there is a connection.
  virtual StoreResult<void> connect(const std::stop_token& stop) = 0;
  /// Thread-safe. That it holds is told by a Push.
  virtual StoreResult<void> subscribe(const std::string& channel) = 0;
  virtual StoreResult<void> unsubscribe(const std::string& channel) = 0;
  /// The next push; nothing if none comes within `longest`. A stop ends the wait within 100 ms.
  virtual StoreResult<std::optional<Push>> receive(Duration longest,
                                                   const std::stop_token& stop) = 0;
};

/// Makes the connections of one run, so that a test or a fault can put others in their place.
class ConnectionFactory {
 public:
  virtual ~ConnectionFactory() = default;
  /// Thread-safe. `env` must outlive the connection.
  virtual std::unique_ptr<Connection> make(const Endpoint& endpoint, Duration command_timeout,
                                           Env& env) = 0;
  /// Likewise.
  virtual std::unique_ptr<Subscriber> make_subscriber(const Endpoint& endpoint,
                                                      Duration command_timeout, Env& env) = 0;
};

/// Real connections: hiredis speaks the protocol, over TCP or a unix socket.
std::unique_ptr<ConnectionFactory> make_hiredis_factory();

}  // namespace lockbench::redis
