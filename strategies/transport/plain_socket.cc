#include "strategies/transport/plain_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

/// True if the descriptor was ready in time. A signal counts as not ready.
bool wait_for(int fd, short events, Duration timeout) {
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  const timespec limit = to_timespec(timeout);
  return ppoll(&ready, 1, &limit, nullptr) > 0;
}

timeval to_timeval(Duration duration) {
  // Zero would mean no timeout.
  const auto microseconds = std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(duration).count(), 1);
  return {.tv_sec = microseconds / 1'000'000, .tv_usec = microseconds % 1'000'000};
}

bool prepare(int fd, bool tcp, Duration timeout) {
  const auto set = [fd](int level, int name, const auto& value) {
    return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
  };
  const timeval limit = to_timeval(timeout);
  const int flags = ::fcntl(fd, F_GETFL);
  const bool blocks = flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0 &&
                      set(SOL_SOCKET, SO_RCVTIMEO, limit) && set(SOL_SOCKET, SO_SNDTIMEO, limit);
  if (!tcp) return blocks;
  // A subscriber that only listens would never notice that a router has forgotten its connection:
  // after 11 s the kernel does.
  constexpr int kOn = 1, kIdleSeconds = 5, kIntervalSeconds = 2, kProbes = 3;
  return blocks && set(IPPROTO_TCP, TCP_NODELAY, kOn) && set(SOL_SOCKET, SO_KEEPALIVE, kOn) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// On a thread of its own it waits in one blocking call with the socket's own timeout: a command
/// costs two system calls, as in the simplest client, however many clients there are. A stop ends
/// that call by shutting down the reading side; TCP still delivers what arrives later. On a shared
/// carrier it never blocks, and waits in the carrier's poll. It may pass from one to the other.
class Socket : public Transport {
 public:
  Socket(OwnedSocket socket, bool tcp, const Timeouts& timeouts)
      : socket_(std::move(socket)),
        fd_(socket_.fd()),
        tcp_(tcp),
        blocks_for_(timeouts.answer),
        grace_(timeouts.after_stop * 3 / 10),
        keeper_(&Carrier::current()) {
    keeper_->keep(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() override {
    on_stop_.reset();  // waits for a running callback, which uses the descriptor
    keeper_->forget(fd_);
  }

  Status send(std::string_view bytes, Duration timeout) override {
    Carrier& carrier = Carrier::current();
    const bool parks = carrier.shared();
    std::optional<TimePoint> give_up_at;
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | (parks ? MSG_DONTWAIT : 0));
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (parks) {
          if (!give_up_at) give_up_at = Carrier::current().now() + timeout;
          const Duration left = *give_up_at - Carrier::current().now();
          if (left <= Duration::zero()) return Status::timed_out;
          wait_on(carrier, POLLOUT, left, {});
        } else if (timeout <= blocks_for_ || !wait_for(fd_, POLLOUT, timeout - blocks_for_)) {
          // The socket's own timeout has passed, and the rest of a longer one.
          return Status::timed_out;
        }
      } else if (errno != EINTR) {
        return Status::closed;
      }
    }
    return Status::ok;
  }

  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    Carrier& carrier = Carrier::current();
    if (carrier.shared()) return receive_parked(carrier, buffer, timeout, stop);
    heed(stop);
    const bool only_look = timeout <= Duration::zero();
    const bool own_time = timeout == blocks_for_ || only_look;
    if (!own_time && !wait_for(fd_, POLLIN, timeout)) return {Status::timed_out, 0};
    const ssize_t got = take(buffer, only_look ? MSG_DONTWAIT : 0);
    if (got > 0) return {Status::ok, static_cast<std::size_t>(got)};
    if (got < 0) {
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Status::timed_out : Status::closed, 0};
    }
    return usable() ? Received{Status::closed, 0}
                    : receive_interrupted(buffer, std::min(timeout, grace_));
  }

  int descriptor() const override {
    if (!keeper_->shared()) return fd_;
    // Where it is kept, a poll shows only what has come since the last one.
    if (may_hold_bytes_) return -1;
    polled_outside_ = true;
    return fd_;
  }

  bool usable() const override { return !interrupted_.load(std::memory_order_acquire); }

  std::string why_closed() override {
    if (heard_ || !tcp_) return Transport::why_closed();
    return "the connection was closed before the first answer (is it a TLS port?)";
  }

 private:
  struct Interrupt {
    Socket& socket;
    void operator()() const noexcept {
      socket.interrupted_.store(true, std::memory_order_release);
      ::shutdown(socket.fd_, SHUT_RD);
    }
  };

  void wait_on(Carrier& carrier, short events, Duration longest, const std::stop_token& stop) {
    // A service may have made the connection of a client that runs elsewhere.
    if (&carrier != keeper_) {
      keeper_->forget(fd_);
      carrier.keep(fd_);
      keeper_ = &carrier;
    }
    pollfd ready{.fd = fd_, .events = events, .revents = 0};
    carrier.poll({&ready, 1}, longest, stop);
  }

  Received receive_parked(Carrier& carrier, std::span<char> buffer, Duration timeout,
                          const std::stop_token& stop) {
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
      wait_on(carrier, POLLIN, left, stopped ? never : stop);
      if (const auto got = look(buffer)) return *got;
    }
    return {stopped ? Status::stopped : Status::timed_out, 0};
  }

  /// Nothing if there is nothing to receive yet.
  std::optional<Received> look(std::span<char> buffer) {
    const ssize_t got = take(buffer, MSG_DONTWAIT);
    if (got > 0) return Received{Status::ok, static_cast<std::size_t>(got)};
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    return Received{usable() ? Status::closed : Status::stopped, 0};
  }

  /// As recv().
  ssize_t take(std::span<char> buffer, int flags) {
    ssize_t got = 0;
    do {
      got = ::recv(fd_, buffer.data(), buffer.size(), flags);
    } while (got < 0 && errno == EINTR);
    heard_ = heard_ || got > 0;
    polled_outside_ = false;
    may_hold_bytes_ = got == static_cast<ssize_t>(buffer.size());
    return got;
  }

  void heed(const std::stop_token& stop) {
    if (stop == heeded_) return;
    heeded_ = stop;
    on_stop_.reset();
    if (stop.stop_possible()) on_stop_.emplace(stop, Interrupt{*this});
  }

  /// An answer under way may still come. poll() is useless here, as it sees the end of the stream.
  Received receive_interrupted(std::span<char> buffer, Duration longest) {
    constexpr Duration kPause = std::chrono::milliseconds(1);
    for (Duration waited{}; waited < longest; waited += kPause) {
      wait_for(-1, 0, kPause);
      const ssize_t got = take(buffer, MSG_DONTWAIT);
      if (got > 0) return {Status::ok, static_cast<std::size_t>(got)};
    }
    return {Status::stopped, 0};
  }

  const OwnedSocket socket_;
  const int fd_;
  const bool tcp_;
  const Duration blocks_for_;
  const Duration grace_;  ///< how long an answer under way may still take after a stop
  Carrier* keeper_;       ///< where it was made or, if that is shared, waited for last; outlives it
  // Of whoever receives:
  bool heard_ = false;                   ///< anything
  bool may_hold_bytes_ = false;          ///< the last buffer was filled
  mutable bool polled_outside_ = false;  ///< perhaps, since then: what it showed it shows once
  std::atomic<bool> interrupted_{false};
  std::stop_token heeded_;
  std::optional<std::stop_callback<Interrupt>> on_stop_;
};

}  // namespace

OwnedSocket::~OwnedSocket() {
  if (fd_ >= 0) ::close(fd_);
}

tl::expected<std::unique_ptr<Transport>, std::string> make_plain_socket(OwnedSocket socket,
                                                                        bool tcp,
                                                                        const Timeouts& timeouts) {
  if (!prepare(socket.fd(), tcp, timeouts.answer)) {
    return tl::unexpected(std::system_category().message(errno));
  }
  return std::make_unique<Socket>(std::move(socket), tcp, timeouts);
}

}  // namespace lockbench
