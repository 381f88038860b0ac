#include "strategies/transport/socket.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
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
#include <vector>

namespace lockbench {
namespace {

std::string describe(int error) { return std::system_category().message(error); }

// How often a wait that cannot be interrupted checks for a stop.
constexpr Duration kSlice = std::chrono::milliseconds(20);
// How long an answer under way may still take after a stop.
constexpr Duration kGrace = std::chrono::milliseconds(30);

/// True if the descriptor was ready in time. A signal counts as not ready.
bool wait_for(int fd, short events, Duration timeout) {
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  const timespec limit{.tv_sec = std::chrono::floor<std::chrono::seconds>(timeout).count(),
                       .tv_nsec = (timeout % std::chrono::seconds(1)).count()};
  return ppoll(&ready, 1, &limit, nullptr) > 0;
}

timeval to_timeval(Duration duration) {
  // Zero would mean no timeout.
  const auto microseconds = std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(duration).count(), 1);
  return {.tv_sec = microseconds / 1'000'000, .tv_usec = microseconds % 1'000'000};
}

/// Waits in one blocking call with the socket's own timeout: a command costs two system calls, as
/// in the simplest client, however many clients there are. A stop ends that call by shutting down
/// the reading side; TCP still delivers what arrives later.
class Socket : public Transport {
 public:
  Socket(int fd, Duration blocks_for) : fd_(fd), blocks_for_(blocks_for) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() override {
    on_stop_.reset();  // waits for a running callback, which uses the descriptor
    ::close(fd_);
  }

  Status send(std::string_view bytes, Duration timeout) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        // The socket's own timeout has passed; wait once for the rest of a longer one.
        if (timeout <= blocks_for_ || !wait_for(fd_, POLLOUT, timeout - blocks_for_)) {
          return Status::timed_out;
        }
      } else if (errno != EINTR) {
        return Status::closed;
      }
    }
    return Status::ok;
  }

  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    heed(stop);
    const bool only_look = timeout <= Duration::zero();
    const bool own_time = timeout == blocks_for_ || only_look;
    if (!own_time && !wait_for(fd_, POLLIN, timeout)) return {Status::timed_out, 0};
    ssize_t got = 0;
    do {
      got = ::recv(fd_, buffer.data(), buffer.size(), only_look ? MSG_DONTWAIT : 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) return {Status::ok, static_cast<std::size_t>(got)};
    if (got < 0) {
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Status::timed_out : Status::closed, 0};
    }
    return usable() ? Received{Status::closed, 0} : receive_interrupted(buffer);
  }

  int descriptor() const override { return fd_; }

  bool usable() const override { return !interrupted_.load(std::memory_order_acquire); }

 private:
  struct Interrupt {
    Socket& socket;
    void operator()() const noexcept {
      socket.interrupted_.store(true, std::memory_order_release);
      ::shutdown(socket.fd_, SHUT_RD);
    }
  };

  void heed(const std::stop_token& stop) {
    if (!stop.stop_possible() || stop == heeded_) return;
    heeded_ = stop;
    on_stop_.emplace(stop, Interrupt{*this});
  }

  /// An answer under way may still come. poll() is useless here, as it sees the end of the stream.
  Received receive_interrupted(std::span<char> buffer) {
    constexpr Duration kPause = std::chrono::milliseconds(1);
    for (Duration waited{}; waited < kGrace; waited += kPause) {
      wait_for(-1, 0, kPause);
      const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) return {Status::ok, static_cast<std::size_t>(got)};
    }
    return {Status::stopped, 0};
  }

  const int fd_;
  const Duration blocks_for_;
  std::atomic<bool> interrupted_{false};
  std::stop_token heeded_;
  std::optional<std::stop_callback<Interrupt>> on_stop_;
};

/// Checks for a stop in each kSlice.
void poll_in_slices(std::vector<pollfd>& polled, Duration longest, const std::stop_token& stop) {
  for (Duration waited{}; waited <= longest && !stop.stop_requested(); waited += kSlice) {
    const Duration slice = std::min(longest - waited, kSlice);
    const timespec limit{.tv_sec = 0, .tv_nsec = slice.count()};
    if (ppoll(polled.data(), polled.size(), &limit, nullptr) > 0) return;
  }
}

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};
using ContextPtr = std::unique_ptr<redisContext, ContextDeleter>;

/// hiredis resolves the name and connects without blocking; nothing else of it is used here.
ContextPtr start_connecting(const SocketAddress& address) {
  return ContextPtr(address.path.empty() ? redisConnectNonBlock(address.host.c_str(), address.port)
                                         : redisConnectUnixNonBlock(address.path.c_str()));
}

/// Empty if it is connected.
std::string error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? std::string() : describe(error);
}

bool make_blocking(int fd, bool tcp, Duration timeout) {
  const timeval limit = to_timeval(timeout);
  const int on = 1;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0 &&
         ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
         (!tcp || ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
}

class SocketConnecting : public Connecting {
 public:
  SocketConnecting(ContextPtr context, bool tcp, Duration timeout)
      : context_(std::move(context)), tcp_(tcp), timeout_(timeout) {}

  tl::expected<std::unique_ptr<Transport>, std::string> get(Duration longest,
                                                            const std::stop_token& stop) override {
    const int fd = context_->fd;
    for (Duration waited{}; !wait_for(fd, POLLOUT, std::min(longest - waited, kSlice));) {
      waited += kSlice;
      if (waited >= longest || stop.stop_requested()) return nullptr;
    }
    if (std::string error = error_of(fd); !error.empty()) return tl::unexpected(std::move(error));
    if (!make_blocking(fd, tcp_, timeout_)) return tl::unexpected(describe(errno));
    return std::make_unique<Socket>(redisFreeKeepFd(context_.release()), timeout_);
  }

 private:
  ContextPtr context_;
  const bool tcp_;
  const Duration timeout_;
};

}  // namespace

std::string describe(Transport::Status status, Duration timeout) {
  switch (status) {
    case Transport::Status::timed_out:
      return "no answer within " + format_duration(timeout);
    case Transport::Status::stopped:
      return "stopped while waiting for the answer";
    default:
      return "the connection was closed";
  }
}

void wait_for_any(std::span<Watched> watched, Duration longest, const std::stop_token& stop) {
  std::vector<pollfd> polled;
  polled.reserve(watched.size());
  for (const Watched& one : watched) {
    polled.push_back({.fd = one.descriptor, .events = POLLIN, .revents = 0});
  }
  const bool known =
      std::ranges::any_of(watched, [](const auto& one) { return one.descriptor < 0; });
  if (!known) poll_in_slices(polled, longest, stop);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    watched[i].ready = known || polled[i].revents != 0;
  }
}

tl::expected<std::unique_ptr<Connecting>, std::string> begin_connecting(
    const SocketAddress& address, Duration timeout) {
  ContextPtr context = start_connecting(address);
  if (!context) return tl::unexpected<std::string>("out of memory");
  if (context->err != 0) return tl::unexpected<std::string>(context->errstr);
  return std::make_unique<SocketConnecting>(std::move(context), address.path.empty(), timeout);
}

tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const SocketAddress& address,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop) {
  const auto connecting = begin_connecting(address, timeout);
  if (!connecting) return tl::unexpected(connecting.error());
  auto connected = (*connecting)->get(timeout, stop);
  if (!connected || *connected) return connected;
  return tl::unexpected(stop.stop_requested() ? std::string("stopped while connecting")
                                              : "no connection within " + format_duration(timeout));
}

}  // namespace lockbench
