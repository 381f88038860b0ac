#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#include "strategies/transport/lookup.h"
#include "tests/support/eventually.h"

namespace lockbench::test {

inline PeerAddress address_on(int family, std::uint16_t port) {
  PeerAddress address;
  if (family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = htons(port);
    address.size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
  }
  return address;
}

/// Listens on a free port of 127.0.0.1. The kernel accepts connections; nobody answers them.
class Listener {
 public:
  explicit Listener(int backlog = 8) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    PeerAddress address = address_on(AF_INET, 0);
    auto* const any = reinterpret_cast<sockaddr*>(&address.storage);
    if (::bind(fd_, any, address.size) != 0 || ::listen(fd_, backlog) != 0 ||
        ::getsockname(fd_, any, &address.size) != 0) {
      throw std::runtime_error("no socket to listen on");
    }
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(any)->sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(fd_); }

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }

 private:
  const int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace lockbench::test
