#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/env.h"
#include "strategies/transport/socket.h"
#include "strategies/url.h"
#include "strategies/zookeeper/client/messages.h"

namespace lockbench::zookeeper {

/// One ZooKeeper ensemble: [zk://[user:password@]]host[:port][,host[:port]...][/chroot], or zks://
/// for TLS, with a query as in TlsSettings. User and password authenticate by the digest scheme;
/// with them, only that user may touch the nodes that the locks create. The path is the prefix of
/// all nodes ("/app"), often empty.
using Endpoint = Url;
/// As parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

/// A connection that carries packets, each preceded by its length in four bytes. One thread at a
/// time in each direction.
class Packets {
 public:
  /// The length of one wait that no stop can end.
  static constexpr Duration kPace = std::chrono::milliseconds(20);
  /// Larger packets are refused. A list of 20'000 waiters takes 1 MiB.
  static constexpr std::size_t kLargest = std::size_t{4} << 20U;

  explicit Packets(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  /// False: the connection is broken, or its server does not read. Does not wait, as its session
  /// holds a mutex.
  bool send(std::string_view framed) {
    return transport_->send(framed, Duration::zero()) == Transport::Status::ok;
  }
  /// Waits for bytes, for at most `longest`; looks only, if that is zero.
  Transport::Status receive(Duration longest, const std::stop_token& stop = {});
  /// The next complete packet, without its length; valid until the next receive(). The error says
  /// that the bytes are not packets.
  tl::expected<std::optional<std::string_view>, std::string> next();

  /// Call it after a receive() that found it closed.
  std::string why_closed() { return transport_->why_closed(); }
  int descriptor() const { return transport_->descriptor(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::string received_;
  std::size_t read_ = 0;  ///< bytes already returned by next()
};

/// Begins to connect to a server, for at most `patience`.
using Connector = std::function<tl::expected<std::unique_ptr<Connecting>, std::string>(
    const HostPort& server, Duration patience)>;
/// The dialer must outlive it.
Connector connect_by(Dialer& dialer, std::shared_ptr<const TlsSettings> tls);

/// A session's connection to one server of its ensemble, and the way to the next one. The servers
/// are tried in a random order. One thread at a time.
class Link {
 public:
  /// Without a connector, by sockets. `env` provides the random order.
  Link(const Endpoint& endpoint, Env& env, Connector connector = {});

  /// For a new session: forgets earlier failures. Each server may take `patience` to greet.
  void begin(Duration patience);
  /// Takes the next steps towards a connection, within `longest`, with the clock and the sleeps of
  /// `env`. Returns a server's greeting once there is one; then packets() may be used.
  std::optional<Greeting> advance(const Identity& session, Duration ttl, Env& env,
                                  Duration longest);
  /// Ends the connection. The next attempt is at the next server, without a pause.
  void drop();
  /// Likewise, and counts as a failed attempt at this server.
  void reject(TimePoint now, std::string why) { fail(now, std::move(why)); }

  Packets& packets() { return *packets_; }
  /// -1 without a connection.
  int descriptor() const { return packets_ ? packets_->descriptor() : -1; }
  /// When the greeting was sent.
  TimePoint greeted_at() const { return greeted_at_; }
  /// Every server has refused, without delay, since begin() or the last connection.
  bool is_hopeless() const { return refusals_ >= servers_.size(); }
  /// The client's process has ended: its Env does not wait any more.
  bool is_over() const { return over_; }
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
  bool over_ = false;
  std::string why_;
};

}  // namespace lockbench::zookeeper
