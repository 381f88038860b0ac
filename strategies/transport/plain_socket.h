#pragma once

#include <memory>
#include <tl/expected.hpp>
#include <utility>

#include "strategies/transport/socket.h"

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

 private:
  int fd_;
};

/// Takes over a connected socket, for any carrier: the present one keeps it until its end. `tcp`:
/// not a unix socket. `after_stop`: as in Timeouts.
tl::expected<std::unique_ptr<Transport>, std::string> make_plain_socket(OwnedSocket socket,
                                                                        bool tcp,
                                                                        Duration after_stop);

}  // namespace lockbench
