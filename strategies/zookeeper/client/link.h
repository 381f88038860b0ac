#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/env.h"
#include "strategies/transport/socket.h"
#include "strategies/zookeeper/client/endpoint.h"
#include "strategies/zookeeper/client/messages.h"
#include "strategies/zookeeper/client/packets.h"

namespace lockbench::zookeeper {

/// Begins to connect to a server, which has `patience` to accept.
using Connector = std::function<tl::expected<std::unique_ptr<Connecting>, std::string>(
    const HostPort& server, Duration patience)>;

/// A session's connection to one server of its ensemble, and the way to the next one. The servers
/// are tried in a random order. One thread at a time.
class Link {
 public:
  /// Without a connector, by sockets. `env` gives the order.
  Link(const Endpoint& endpoint, Env& env, Connector connector = {});

  /// For a new session: forgets what has failed. Each server may take `patience` to greet.
  void begin(Duration patience);
  /// The next steps towards a connection, within `longest`, with the clock and the sleeps of `env`.
  /// A server's greeting once there is one; then packets() may be used.
  std::optional<Greeting> advance(const Identity& session, Duration ttl, Env& env,
                                  Duration longest);
  /// Ends the connection. The next attempt is made with the next server, at once.
  void drop();
  /// Likewise; what was wrong with the server counts as a failed attempt.
  void reject(TimePoint now, std::string why) { fail(now, std::move(why)); }

  Packets& packets() { return *packets_; }
  /// -1 without a connection.
  int descriptor() const { return packets_ ? packets_->descriptor() : -1; }
  /// When the greeting was sent.
  TimePoint greeted_at() const { return greeted_at_; }
  /// Every server has failed, since begin() or the last connection, without keeping us waiting.
  bool is_hopeless() const { return refusals_ >= servers_.size(); }
  /// Why the last attempt failed; empty if none did.
  const std::string& why() const { return why_; }

 private:
  enum class Step { idle, dialling, greeting, up };

  void dial(TimePoint now);
  void finish_dialling(const Identity& session, Duration ttl, TimePoint now, Duration longest);
  std::optional<Greeting> hear(TimePoint now, Duration longest);
  void fail(TimePoint now, std::string why, bool kept_waiting = false);
  void disconnect();

  std::vector<HostPort> servers_;
  const Connector connector_;
  std::size_t next_ = 0;
  Duration patience_{};

  Step step_ = Step::idle;
  std::unique_ptr<Connecting> dialling_;
  std::optional<Packets> packets_;
  TimePoint give_up_at_{}, greeted_at_{};
  TimePoint retry_at_ = TimePoint::min();
  Duration pause_{};          ///< after all servers have failed; grows
  std::size_t failures_ = 0;  ///< since the last connection
  std::size_t refusals_ = 0;  ///< likewise, in a row
  std::string why_;
};

}  // namespace lockbench::zookeeper
