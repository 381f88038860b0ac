#include "strategies/redis/socket.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace lockbench::redis {
namespace {

std::string describe(int error) { return std::system_category().message(error); }

// How long a blocking call lasts before it looks round.
constexpr Duration kSlice = std::chrono::milliseconds(20);
// How long an answer that is on its way may still take once a stop was requested.
constexpr Duration kGrace = std::chrono::milliseconds(30);

/// True if one of the descriptors was ready in time. A signal counts as not ready.
bool wait_for(std::span<pollfd> descriptors, Duration timeout) {
  const timespec limit{.tv_sec = std::chrono::floor<std::chrono::seconds>(timeout).count(),
                       .tv_nsec = (timeout % std::chrono::seconds(1)).count()};
  return ppoll(descriptors.data(), descriptors.size(), &limit, nullptr) > 0;
}

bool wait_for(int fd, short events, Duration timeout) {
  pollfd ready{.fd = fd, .events = events, .revents = 0};
  return wait_for(std::span(&ready, 1), timeout);
}

class Socket : public Transport {
 public:
  Socket(int fd, StopSignals& signals) : fd_(fd), signals_(signals) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() override { ::close(fd_); }

  Status send(std::string_view bytes, Duration timeout) override {
    // The socket's own time-out ends each call after a slice.
    for (Duration waited{}; !bytes.empty();) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        waited += kSlice;
        if (waited >= timeout) return Status::timed_out;
      } else if (errno != EINTR) {
        return Status::closed;
      }
    }
    return Status::ok;
  }

  /// While answers come fast, one blocking call with the socket's own short time-out. Where they
  /// are slow, thousands of clients on one server for instance, waking up for every slice would
  /// cost more than the command: then it waits for the answer and the stop at once, which is one
  /// call more.
  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    if (!slow_ && timeout >= kSlice && !stop.stop_requested()) {
      const Received received = read(buffer, 0);
      if (received.status != Status::timed_out) return received;
      slow_ = true;
      timeout -= kSlice;
    }
    return receive_slowly(buffer, timeout, stop);
  }

 private:
  Received read(std::span<char> buffer, int flags) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), flags);
    if (got > 0) return {Status::ok, static_cast<std::size_t>(got)};
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      return {Status::timed_out, 0};
    }
    return {Status::closed, 0};
  }

  Received receive_slowly(std::span<char> buffer, Duration timeout, const std::stop_token& stop) {
    // Real time: however a client's clock is skewed, a socket's time-out is not.
    const auto begun = std::chrono::steady_clock::now();
    heed(stop);
    std::array<pollfd, 2> awaited{{{.fd = fd_, .events = POLLIN, .revents = 0},
                                   {.fd = heeded_ && stop.stop_possible() ? heeded_->fd() : -1,
                                    .events = POLLIN,
                                    .revents = 0}}};
    for (Duration left = timeout; left > Duration::zero();) {
      wait_for(awaited, left);
      left = timeout - (std::chrono::steady_clock::now() - begun);
      if (awaited[0].revents != 0) {
        slow_ = timeout - left > kSlice / 2;
        return read(buffer, MSG_DONTWAIT);
      }
      if (awaited[1].revents != 0) {
        if (wait_for(fd_, POLLIN, std::min(left, kGrace))) return read(buffer, MSG_DONTWAIT);
        return {Status::stopped, 0};
      }
    }
    return {Status::timed_out, 0};
  }

  void heed(const std::stop_token& stop) {
    if (!stop.stop_possible() || (heeded_ && heeded_stop_ == stop)) return;
    heeded_ = signals_.of(stop);
    heeded_stop_ = stop;
  }

  const int fd_;
  StopSignals& signals_;
  bool slow_ = false;
  std::stop_token heeded_stop_;
  std::shared_ptr<StopSignal> heeded_;
};

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};
using ContextPtr = std::unique_ptr<redisContext, ContextDeleter>;

ContextPtr start_connecting(const Endpoint& endpoint) {
  return ContextPtr(endpoint.path.empty()
                        ? redisConnectNonBlock(endpoint.host.c_str(), endpoint.port)
                        : redisConnectUnixNonBlock(endpoint.path.c_str()));
}

/// Empty if the connection stands.
std::string await_connected(int fd, Duration timeout, const std::stop_token& stop) {
  for (Duration waited{}; !wait_for(fd, POLLOUT, std::min(timeout, kSlice));) {
    waited += kSlice;
    if (stop.stop_requested()) return "stopped while connecting";
    if (waited >= timeout) return "no connection within " + format_duration(timeout);
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  return error == 0 ? std::string() : describe(error);
}

/// From here on calls block, for a slice at the most.
bool make_blocking(int fd, bool tcp) {
  const timeval slice{
      .tv_sec = 0,
      .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(kSlice).count()};
  const int on = 1;
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0 &&
         ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice) == 0 &&
         (!tcp || ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
}

}  // namespace

tl::expected<std::unique_ptr<Transport>, std::string> connect_socket(const Endpoint& endpoint,
                                                                     Duration timeout,
                                                                     const std::stop_token& stop,
                                                                     StopSignals& signals) {
  ContextPtr context = start_connecting(endpoint);
  if (!context) return tl::unexpected<std::string>("out of memory");
  if (context->err != 0) return tl::unexpected<std::string>(context->errstr);
  if (std::string error = await_connected(context->fd, timeout, stop); !error.empty()) {
    return tl::unexpected(std::move(error));
  }
  if (!make_blocking(context->fd, endpoint.path.empty())) return tl::unexpected(describe(errno));
  return std::make_unique<Socket>(redisFreeKeepFd(context.release()), signals);
}

}  // namespace lockbench::redis
