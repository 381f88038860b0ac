#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tests/support/eventually.h"

namespace lockbench::test {

double metric_on(const std::string& page, const std::string& series) {
  double value = -1;
  const std::size_t at = page.find("\n" + series);
  if (at == std::string::npos) return value;
  const std::size_t end = page.find('\n', at + 1);
  const std::size_t begin = page.rfind(' ', end) + 1;
  std::from_chars(page.data() + begin, page.data() + std::min(end, page.size()), value);
  return value;
}

RawConnection::RawConnection(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) ::close(socket_);
}

void RawConnection::send(const std::string& bytes) const {
  static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

std::string RawConnection::receive_all() const {
  std::string received;
  std::array<char, 65536> bytes{};
  ssize_t count = 0;
  while ((count = ::recv(socket_, bytes.data(), bytes.size(), 0)) > 0) {
    received.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return received;
}

HttpReply http_get(std::uint16_t port, const std::string& path) {
  const RawConnection connection(port);
  if (!connection.connected()) return {};
  connection.send(
      fmt::format("GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n", path));  // not in chunks
  const std::string received = connection.receive_all();
  const std::size_t end = received.find("\r\n\r\n");
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  if (end == std::string::npos || end < kStatusAt + 3) return {};
  HttpReply reply{.head = received.substr(0, end), .body = received.substr(end + 4)};
  std::from_chars(received.data() + kStatusAt, received.data() + kStatusAt + 3, reply.status);
  return reply;
}

}  // namespace lockbench::test
