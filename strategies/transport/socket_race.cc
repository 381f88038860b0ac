#include "strategies/transport/socket_race.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

/// Between two looks at a server whose queue is full.
constexpr Duration kFullPause = std::chrono::milliseconds(1);

/// 0 if it is connected.
int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

OwnedSocket::~OwnedSocket() {
  if (fd_ >= 0) ::close(fd_);
}

tl::expected<int, std::string> SocketRace::get(Duration longest, const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + longest;
  // Bounded by `longest`, and by one look where that is zero.
  while (true) {
    const TimePoint now = Carrier::current().now();
    start_due(now);
    if (runners_.empty() && !queue_full_) return tl::unexpected(failures_);
    const TimePoint next_at = started_at_ + (queue_full_ ? kFullPause : kHeadStart);
    const TimePoint until = next_ < addresses_.size() ? std::min(end, next_at) : end;
    std::vector<pollfd> polled;
    polled.reserve(runners_.size());
    for (const Runner& runner : runners_) {
      polled.push_back({.fd = runner.socket.fd(), .events = POLLOUT, .revents = 0});
    }
    Carrier::current().poll(polled, std::max(until - now, Duration::zero()), stop);
    if (const int winner = settle(polled); winner >= 0) return winner;
    const bool over = Carrier::current().now() >= end || stop.stop_requested();
    const bool failed = runners_.empty() && next_ == addresses_.size();
    if (over && !failed) return -1;
  }
}

void SocketRace::start_due(TimePoint now) {
  if (next_ > 0 && !runners_.empty() && now - started_at_ < kHeadStart) return;
  queue_full_ = false;
  if (next_ < addresses_.size()) start_next();
  // Those that fail at once, as where a family is missing, cost no time.
  while (runners_.empty() && !queue_full_ && next_ < addresses_.size()) start_next();
  started_at_ = now;
}

void SocketRace::start_next() {
  const std::size_t address = next_++;
  const PeerAddress& peer = addresses_[address];
  OwnedSocket socket(
      ::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) return failed(address, errno);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what the sockets want
  const auto* const to = reinterpret_cast<const sockaddr*>(&peer.storage);
  if (::connect(socket.fd(), to, peer.size) != 0 && errno != EINPROGRESS) {
    // A unix socket tells; over TCP the kernel tries again by itself.
    queue_full_ = errno == EAGAIN && peer.storage.ss_family == AF_UNIX;
    if (!queue_full_) return failed(address, errno);
    next_ = address;
    return;
  }
  runners_.push_back({.socket = std::move(socket), .address = address});
}

int SocketRace::settle(const std::vector<pollfd>& polled) {
  std::vector<Runner> left;
  int winner = -1;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    Runner& runner = runners_[i];
    const int error = polled[i].revents == 0 ? 0 : error_of(runner.socket.fd());
    if (error != 0) {
      failed(runner.address, error);
    } else if (polled[i].revents != 0 && winner < 0) {
      winner = runner.socket.release();
    } else {
      left.push_back(std::move(runner));
    }
  }
  runners_ = std::move(left);
  return winner;
}

void SocketRace::failed(std::size_t address, int error) {
  const std::string why = std::system_category().message(error);
  if (addresses_.size() == 1) {
    failures_ = why;
  } else {
    failures_ +=
        fmt::format("{}{}: {}", failures_.empty() ? "" : "; ", addresses_[address].display(), why);
  }
}

}  // namespace lockbench
