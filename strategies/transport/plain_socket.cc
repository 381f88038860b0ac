#include "strategies/transport/plain_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

bool prepare(int fd) {
  const auto set = [fd](int level, int name, int value) {
    return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
  };
  // A subscriber that only listens would never notice that a router has forgotten its connection:
  // after 11 s the kernel does.
  constexpr int kOn = 1, kIdleSeconds = 5, kIntervalSeconds = 2, kProbes = 3;
  return set(IPPROTO_TCP, TCP_NODELAY, kOn) && set(SOL_SOCKET, SO_KEEPALIVE, kOn) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// Never blocks: it waits in the poll of the carrier that its caller runs on, and may pass from one
/// to another.
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
    // An answer takes its time: looking first where nothing is left costs a system call for each.
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
    // Where it is kept, a poll shows only what has come since the last one.
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
    // A service may have made the connection of a client that runs elsewhere.
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
  Carrier* keeper_;       ///< where it was made or waited for last; outlives it
  // For the caller that receives:
  bool heard_ = false;                   ///< anything
  bool may_hold_bytes_ = false;          ///< the last buffer was filled
  mutable bool polled_outside_ = false;  ///< perhaps, since then: what it showed it shows once
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

}  // namespace lockbench
