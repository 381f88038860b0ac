#include "strategies/transport/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/transport/tls_transport.h"

namespace lockbench {
namespace {

using Connected = tl::expected<std::unique_ptr<Transport>, std::string>;

bool prepare(int fd) {
  const auto set = [fd](int level, int name, int value) {
    return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
  };
  // A subscriber that only listens would never notice a connection that a router has forgotten:
  // with these, the kernel does after 11 s.
  constexpr int kOn = 1, kIdleSeconds = 5, kIntervalSeconds = 2, kProbes = 3;
  return set(IPPROTO_TCP, TCP_NODELAY, kOn) && set(SOL_SOCKET, SO_KEEPALIVE, kOn) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// Never blocks: it waits in the poll of its caller's carrier, and may pass from one carrier to
/// another.
class Socket : public Transport {
 public:
  Socket(OwnedSocket socket, bool tcp, Duration after_stop)
      : socket_(std::move(socket)),
        fd_(socket_.fd()),
        tcp_(tcp),
        grace_(after_stop * 3 / 10),
        keeper_(&Carrier::current()) {
    keeper_->keep(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() override { keeper_->forget(fd_); }

  Status send(std::string_view bytes, Duration timeout) override {
    std::optional<TimePoint> give_up_at;
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        const TimePoint now = Carrier::current().now();
        if (!give_up_at) give_up_at = now + timeout;
        if (now >= *give_up_at) return Status::timed_out;
        wait_for(POLLOUT, *give_up_at - now, {});
      } else if (errno != EINTR) {
        return Status::closed;
      }
    }
    return Status::ok;
  }

  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    const bool only_look = timeout <= Duration::zero();
    // Looks first only if bytes may be left: an answer takes time, and each look costs a system
    // call.
    if (only_look || may_hold_bytes_ || polled_outside_) {
      if (const auto got = look(buffer)) return *got;
    }
    if (only_look) return {Status::timed_out, 0};
    const std::stop_token never;
    bool stopped = false;
    TimePoint give_up_at = Carrier::current().now() + timeout;
    for (Duration left = timeout; left > Duration::zero();
         left = give_up_at - Carrier::current().now()) {
      if (!stopped && stop.stop_requested()) {
        stopped = true;
        left = std::min(left, grace_);
        give_up_at = std::min(give_up_at, Carrier::current().now() + grace_);
      }
      wait_for(POLLIN, left, stopped ? never : stop);
      if (const auto got = look(buffer)) return *got;
    }
    return {stopped ? Status::stopped : Status::timed_out, 0};
  }

  int descriptor() const override {
    // A kept descriptor is edge-triggered: a poll reports only bytes that arrived since the last
    // report.
    if (may_hold_bytes_) return -1;
    polled_outside_ = true;
    return fd_;
  }

  std::string why_closed() override {
    if (heard_ || !tcp_) return Transport::why_closed();
    return "the connection was closed before the first answer (is it a TLS port?)";
  }

 private:
  void wait_for(short events, Duration longest, const std::stop_token& stop) {
    Carrier& carrier = Carrier::current();
    // A service may have made the connection for a client that runs elsewhere.
    if (&carrier != keeper_) {
      keeper_->forget(fd_);
      carrier.keep(fd_);
      keeper_ = &carrier;
    }
    pollfd ready{.fd = fd_, .events = events, .revents = 0};
    carrier.poll({&ready, 1}, longest, stop);
  }

  /// Nothing if there is nothing to receive yet.
  std::optional<Received> look(std::span<char> buffer) {
    ssize_t got = 0;
    do {
      got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    polled_outside_ = false;
    may_hold_bytes_ = got == static_cast<ssize_t>(buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got <= 0) return Received{Status::closed, 0};
    heard_ = true;
    return Received{Status::ok, static_cast<std::size_t>(got)};
  }

  const OwnedSocket socket_;
  const int fd_;
  const bool tcp_;
  const Duration grace_;  ///< how long an answer under way may still take after a stop
  Carrier* keeper_;       ///< of its making or its latest wait; outlives it
  // For the caller that receives:
  bool heard_ = false;                   ///< anything
  bool may_hold_bytes_ = false;          ///< the last buffer was filled
  mutable bool polled_outside_ = false;  ///< since the last look; a poll reports bytes once
};

PeerAddress unix_address(const std::string& path) {
  PeerAddress address;
  sockaddr_un filled{};
  filled.sun_family = AF_UNIX;
  // The last byte stays zero: longer paths are refused where the URL is read.
  path.copy(filled.sun_path, sizeof filled.sun_path - 1);
  std::memcpy(&address.storage, &filled, sizeof filled);
  address.size = sizeof filled;
  return address;
}

/// 0 if it is connected.
int error_of(const OwnedSocket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// The addresses of one server, tried one after the other. Each has a share of the time to connect,
/// so that an unreachable family does not use it up. Only the last may take longer.
class Attempts {
 public:
  /// At least one address.
  Attempts(std::vector<PeerAddress> addresses, Duration time_to_connect)
      : addresses_(std::move(addresses)),
        share_(time_to_connect / static_cast<int>(addresses_.size())) {}

  /// A connected socket, or one without a descriptor after `longest` or a stop. The error names the
  /// addresses if there are several. Not to be called again after a connected socket or an error.
  tl::expected<OwnedSocket, std::string> get(Duration longest, const std::stop_token& stop) {
    Carrier& carrier = Carrier::current();
    const TimePoint end = carrier.now() + longest;
    // Bounded by `longest`; if that is zero, by one look.
    for (bool looked = false;; looked = true) {
      // Addresses that fail immediately, as of a family that is missing here, cost no time.
      while (next_ < addresses_.size() && !is_under_way()) begin();
      if (next_ == addresses_.size()) return tl::unexpected(failures_);
      const TimePoint now = carrier.now();
      if (looked && (now >= end || stop.stop_requested())) return OwnedSocket();
      const bool is_last = next_ + 1 == addresses_.size();
      const TimePoint its_end = is_last ? end : begun_at_ + share_;
      const TimePoint until = std::min(end, queue_full_ ? now + kFullPause : its_end);
      pollfd polled{.fd = socket_.fd(), .events = POLLOUT, .revents = 0};
      carrier.poll(std::span(&polled, queue_full_ ? 0 : 1), std::max(until - now, Duration::zero()),
                   stop);
      queue_full_ = false;
      if (polled.revents != 0) {
        const int error = error_of(socket_);
        if (error == 0) return std::move(socket_);
        failed(std::system_category().message(error));
      } else if (!is_last && carrier.now() >= its_end) {
        failed("no answer within " + format_duration(share_));
      }
    }
  }

 private:
  /// Between two attempts at a server whose queue is full.
  static constexpr Duration kFullPause = std::chrono::milliseconds(1);

  bool is_under_way() const { return socket_.fd() >= 0 || queue_full_; }

  /// Connects to the next address.
  void begin() {
    const PeerAddress& peer = addresses_[next_];
    begun_at_ = Carrier::current().now();
    OwnedSocket socket(
        ::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) return failed(std::system_category().message(errno));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the API of sockets
    const auto* const to = reinterpret_cast<const sockaddr*>(&peer.storage);
    if (::connect(socket.fd(), to, peer.size) == 0 || errno == EINPROGRESS) {
      socket_ = std::move(socket);
      return;
    }
    // Only a unix socket reports a full queue; over TCP the kernel tries again by itself.
    queue_full_ = errno == EAGAIN && peer.storage.ss_family == AF_UNIX;
    if (!queue_full_) failed(std::system_category().message(errno));
  }

  void failed(const std::string& why) {
    if (addresses_.size() == 1) {
      failures_ = why;
    } else {
      failures_ +=
          fmt::format("{}{}: {}", failures_.empty() ? "" : "; ", addresses_[next_].display(), why);
    }
    socket_ = OwnedSocket();
    ++next_;
  }

  const std::vector<PeerAddress> addresses_;
  const Duration share_;
  std::size_t next_ = 0;  ///< or under way
  TimePoint begun_at_{};
  OwnedSocket socket_;
  bool queue_full_ = false;
  std::string failures_;
};

/// Looks the name up, then connects, then does the TLS handshake.
class SocketConnecting : public Connecting {
 public:
  SocketConnecting(const SocketAddress& address, const Timeouts& timeouts,
                   std::shared_ptr<const TlsContext> context, const Resolver& resolver)
      : host_(address.host),
        tcp_(address.path.empty()),
        timeouts_(timeouts),
        context_(std::move(context)) {
    if (tcp_) {
      lookup_ = look_up(address.host, address.port, resolver);
    } else {
      attempts_.emplace(std::vector<PeerAddress>{unix_address(address.path)}, timeouts.answer);
    }
  }

  Connected get(Duration longest, const std::stop_token& stop) override {
    const TimePoint end = Carrier::current().now() + longest;
    const auto left = [&] { return std::max(end - Carrier::current().now(), Duration::zero()); };
    if (!attempts_) {
      auto addresses = lookup_->get(longest, stop);
      if (!addresses) return nullptr;
      if (!*addresses) return tl::unexpected(std::move(addresses->error()));
      if ((*addresses)->empty()) return tl::unexpected<std::string>("its name has no address");
      attempts_.emplace(std::move(**addresses), timeouts_.answer);
    }
    if (!shaking_) {
      auto plain = attempts_->get(left(), stop).and_then([&](OwnedSocket socket) -> Connected {
        if (socket.fd() < 0) return nullptr;
        return make_plain_socket(std::move(socket), tcp_, timeouts_.after_stop);
      });
      if (!plain || !*plain || !context_) return plain;
      auto tls = TlsTransport::make(*std::move(plain), context_, host_);
      if (!tls) return tl::unexpected(std::move(tls.error()));
      shaking_ = *std::move(tls);
    }
    const auto done = shaking_->shake_hands(left(), stop);
    if (!done) return tl::unexpected(done.error());
    if (!*done) return nullptr;
    return std::move(shaking_);
  }

  std::string too_late(Duration timeout) const override {
    return Connecting::too_late(timeout) +
           (shaking_    ? ": no answer to the TLS handshake: the server may not speak TLS"
            : attempts_ ? ""
                        : ": its name is still being looked up");
  }

 private:
  const std::string host_;
  const bool tcp_;
  const Timeouts timeouts_;
  const std::shared_ptr<const TlsContext> context_;  ///< null: without TLS
  std::shared_ptr<Lookup> lookup_;
  std::optional<Attempts> attempts_;
  std::unique_ptr<TlsTransport> shaking_;
};

}  // namespace

OwnedSocket::~OwnedSocket() {
  if (fd_ >= 0) ::close(fd_);
}

tl::expected<std::unique_ptr<Transport>, std::string> make_plain_socket(OwnedSocket socket,
                                                                        bool tcp,
                                                                        Duration after_stop) {
  if (tcp && !prepare(socket.fd())) return tl::unexpected(std::system_category().message(errno));
  return std::make_unique<Socket>(std::move(socket), tcp, after_stop);
}

tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, const Timeouts& timeouts, const TlsSettings* tls,
    const Resolver& resolver) {
  std::shared_ptr<const TlsContext> context;
  if (tls != nullptr) {
    auto shared = TlsContext::share(*tls);
    if (!shared) return tl::unexpected(std::move(shared.error()));
    context = *std::move(shared);
  }
  return std::make_unique<SocketConnecting>(address, timeouts, std::move(context), resolver);
}

void Dialer::poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) {
  Carrier::current().poll(descriptors, longest, stop);
}

Dialer& Dialer::real() {
  static Dialer dialer;
  return dialer;
}

std::string describe(Transport::Status status, Duration timeout, Transport* transport) {
  if (status == Transport::Status::timed_out) return "no answer within " + format_duration(timeout);
  if (status == Transport::Status::stopped) return "stopped while waiting for the answer";
  return transport == nullptr ? "the connection was closed" : transport->why_closed();
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const SocketAddress& address,
                                                                     const Timeouts& timeouts,
                                                                     const std::stop_token& stop,
                                                                     const TlsSettings* tls,
                                                                     Dialer& dialer) {
  const bool stopped = stop.stop_requested();
  const Duration longest = stopped ? time_to_connect_after_stop(timeouts) : timeouts.answer;
  const auto connecting = dialer.begin(address, {longest, timeouts.after_stop}, tls);
  if (!connecting) return tl::unexpected(connecting.error());
  auto connected = (*connecting)->get(longest, stopped ? std::stop_token() : stop);
  if (!connected || *connected) return connected;
  return tl::unexpected(stop.stop_requested() ? std::string("stopped while connecting")
                                              : (*connecting)->too_late(timeouts.answer));
}

}  // namespace lockbench
