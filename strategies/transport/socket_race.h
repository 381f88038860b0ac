#pragma once

#include <poll.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/transport/lookup.h"

namespace lockbench {

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
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// The addresses of one server, tried in order. Each has a head start before the next is tried
/// beside it, and the first that is connected wins (RFC 8305, in short): a family that does not get
/// through must not cost the timeout.
class SocketRace {
 public:
  static constexpr Duration kHeadStart = std::chrono::milliseconds(250);

  explicit SocketRace(std::vector<PeerAddress> addresses) : addresses_(std::move(addresses)) {}

  /// -1 if none is connected within `longest`, or a stop comes. The error names the addresses if
  /// there are several. Not to be called again after a socket or an error.
  tl::expected<int, std::string> get(Duration longest, const std::stop_token& stop);

 private:
  struct Runner {
    OwnedSocket socket;
    std::size_t address = 0;
  };

  void start_due(TimePoint now);
  /// Unless the server's queue is full: then it is to be tried again.
  void start_next();
  /// The winner, or -1.
  int settle(const std::vector<pollfd>& polled);
  void failed(std::size_t address, int error);

  const std::vector<PeerAddress> addresses_;
  std::size_t next_ = 0;
  TimePoint started_at_{};   ///< the last one
  bool queue_full_ = false;  ///< of the next one
  std::vector<Runner> runners_;
  std::string failures_;
};

}  // namespace lockbench
