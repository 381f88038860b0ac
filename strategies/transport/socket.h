#pragma once

#include <poll.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "strategies/duration.h"
#include "strategies/transport/lookup.h"
#include "strategies/transport/poller.h"
#include "strategies/url.h"

namespace lockbench {

/// Where a server listens.
struct SocketAddress {
  std::string host;
  int port = 0;
  std::string path{};  ///< of a unix socket; empty: TCP
};

/// Carries a protocol's bytes: a socket, TLS over another transport, or a simulated network. One
/// caller at a time in each direction.
class Transport {
 public:
  enum class Status { ok, timed_out, stopped, closed };

  struct Received {
    Status status = Status::closed;
    std::size_t bytes = 0;
  };

  virtual ~Transport() = default;
  /// Sends everything within the timeout, or fails. With a timeout of zero it does not wait.
  virtual Status send(std::string_view bytes, Duration timeout) = 0;
  /// Waits for at least one byte. A stop ends the wait, but leaves an answer under way some time to
  /// arrive.
  virtual Received receive(std::span<char> buffer, Duration timeout,
                           const std::stop_token& stop) = 0;
  /// To poll for input; -1 if bytes are already received.
  virtual int descriptor() const = 0;
  /// Whether the server has neither closed the connection nor sent anything, between two requests.
  /// One look, which does not wait; if false, the connection is of no more use.
  bool is_quiet() {
    char byte = 0;
    return receive({&byte, 1}, Duration::zero(), {}).status == Status::timed_out;
  }
  /// After `closed`, if nobody else receives: the reason as far as known.
  virtual std::string why_closed() { return "the connection was closed"; }
};

/// When a connection was last used. A server or a proxy closes one that is idle, so after a second
/// its user looks at it before the next request: each look costs a system call.
class LastUse {
 public:
  /// Whether the last use was long ago; this is the next one.
  bool was_long_ago(TimePoint now) {
    return now - std::exchange(at_, now) > std::chrono::seconds(1);
  }

 private:
  TimePoint at_{};
};

/// The failure in words; `closed` has a reason if the transport is given.
std::string describe(Transport::Status status, Duration timeout, Transport* transport = nullptr);

/// Closes its socket.
class OwnedSocket {
 public:
  explicit OwnedSocket(int fd = -1) : fd_(fd) {}
  OwnedSocket(OwnedSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedSocket& operator=(OwnedSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedSocket();

  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Takes over a connected socket, for use on any carrier; the present one keeps its descriptor
/// first and must outlive it. `tcp`: not a unix socket. `after_stop`: as in Timeouts.
tl::expected<std::unique_ptr<Transport>, std::string> make_plain_socket(OwnedSocket socket,
                                                                        bool tcp,
                                                                        Duration after_stop);

/// A connection under way, over TCP (with TCP_NODELAY) or a unix socket, with TLS or without.
class Connecting {
 public:
  virtual ~Connecting() = default;
  /// Null if it is not connected within `longest`. The error says why it failed, without naming the
  /// server. Not to be called again after it has returned a transport or an error.
  virtual tl::expected<std::unique_ptr<Transport>, std::string> get(
      Duration longest, const std::stop_token& stop) = 0;
  /// The error if it takes too long: "no connection within 3s", and which step does.
  virtual std::string too_late(Duration timeout) const {
    return "no connection within " + format_duration(timeout);
  }
};

/// Does not wait. A name is looked up beside the caller. Its addresses, of both families, are tried
/// one after the other, each for a share of `timeouts.answer`. `tls` is null for none, and needed
/// during this call only.
tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, const Timeouts& timeouts, const TlsSettings* tls = nullptr,
    const Resolver& resolver = resolve);

/// Opens connections and waits for them: real ones here, those of a simulation in another. A run's
/// Services may provide one.
class Dialer {
 public:
  virtual ~Dialer() = default;
  /// As begin_connecting().
  virtual tl::expected<std::unique_ptr<Connecting>, std::string> begin(const SocketAddress& address,
                                                                       const Timeouts& timeouts,
                                                                       const TlsSettings* tls) {
    return begin_connecting(address, timeouts, tls);
  }
  /// As Carrier::poll(), for descriptors of its transports.
  virtual void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop);
  /// As Poller::make(), for the same descriptors.
  virtual tl::expected<std::unique_ptr<Poller>, std::string> make_poller() {
    return Poller::make();
  }

  /// That of real connections.
  static Dialer& real();
};

/// For a connection begun after the stop, to clean up, as after a lost answer.
inline Duration time_to_connect_after_stop(const Timeouts& timeouts) {
  return std::min(timeouts.answer, timeouts.after_stop * 2 / 5);
}

/// The same, and waits; if stopped before the call, for at most time_to_connect_after_stop(). The
/// error does not name the server.
tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(
    const SocketAddress& address, const Timeouts& timeouts, const std::stop_token& stop,
    const TlsSettings* tls = nullptr, Dialer& dialer = Dialer::real());

}  // namespace lockbench
