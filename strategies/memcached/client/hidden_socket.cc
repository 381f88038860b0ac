#include "strategies/memcached/client/hidden_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace lockbench::memcached {
namespace {

using GetName = int (*)(int, sockaddr*, socklen_t*);

/// 0 if it is not a TCP socket.
std::uint16_t port_of(int file, GetName get_name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what the sockets want
  if (get_name(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast)
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  return 0;
}

}  // namespace

bool HiddenSocket::still_there() const {
  return socket_ >= 0 && port_of(socket_, ::getsockname) == own_port_ &&
         port_of(socket_, ::getpeername) == server_port_;
}

void HiddenSocket::wait_at_most(std::chrono::nanoseconds timeout) const {
  // Zero would mean no timeout.
  const auto microseconds = std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(timeout).count(), 1);
  const timeval limit{.tv_sec = microseconds / 1'000'000, .tv_usec = microseconds % 1'000'000};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool HiddenSocket::seize(std::uint16_t own_port, std::uint16_t server_port,
                         std::chrono::nanoseconds timeout) {
  // File numbers are given out in order, so the socket's number is near the next free one.
  constexpr int kFarthest = 100'000;
  const int next = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (next < 0) return false;
  ::close(next);
  timeout_ = timeout;
  own_port_ = own_port;
  server_port_ = server_port;
  for (int distance = 0; distance < kFarthest; ++distance) {
    for (const int file : {next - distance, next + distance}) {
      socket_ = file;
      if (!still_there()) continue;
      wait_at_most(timeout);
      const int flags = ::fcntl(socket_, F_GETFL);
      return flags >= 0 && ::fcntl(socket_, F_SETFL, flags & ~O_NONBLOCK) == 0;
    }
  }
  socket_ = -1;
  return false;
}

void HiddenSocket::release() {
  on_stop_.reset();  // waits for it, if it is running
  heeded_ = {};
  if (still_there()) ::shutdown(socket_, SHUT_RDWR);
  socket_ = -1;
}

void HiddenSocket::begin(const std::stop_token& stop) {
  busy_since_.store(std::max<Clock::rep>(Clock::now().time_since_epoch().count(), 1));
  if (!stop.stop_possible()) return;
  // From here on a stop sees the call under way.
  shortened_ = stop.stop_requested();
  if (shortened_) {
    wait_at_most(std::min<std::chrono::nanoseconds>(timeout_, kGrace));
  } else if (stop != heeded_) {
    heeded_ = stop;
    on_stop_.emplace(stop, Cut{*this});
  }
}

void HiddenSocket::end() {
  busy_since_.store(kIdle);
  if (shortened_) wait_at_most(timeout_);
  shortened_ = false;
}

void HiddenSocket::cut() noexcept {
  const Clock::rep call = busy_since_.load();
  if (call == kIdle) return;
  // An answer may be under way. Bounded by kGrace, for all connections together.
  const auto give_up_at = Clock::time_point(Clock::duration(call)) + kGrace;
  while (busy_since_.load() == call) {
    if (Clock::now() >= give_up_at) {
      if (still_there()) ::shutdown(socket_, SHUT_RD);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockbench::memcached
