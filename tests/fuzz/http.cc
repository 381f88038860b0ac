#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "exporter/http_endpoint.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

const exporter::HttpEndpoint& endpoint() {
  static const auto started = exporter::HttpEndpoint::start(
      {},
      [](std::string_view path) {
        if (path == "/metrics") return exporter::Page{.body = "lockbench_clients 1\n"};
        return exporter::Page{.status = 404, .body = "not found\n"};
      },
      64);
  require(started.has_value());
  return **started;
}

/// A client that says so much, and then nothing any more. It must be answered, or hung up on.
void request(std::string_view given) {
  // Half a request would be waited for until the client has been idle for seconds.
  const std::string bytes = std::string(given) + "\r\n\r\n";
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(client >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint().address().port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  // Closed without a TIME_WAIT: a million of those find no more ports.
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  require(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  static_cast<void>(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ::shutdown(client, SHUT_WR);
  std::array<char, 4096> answer{};
  ssize_t got = 0;
  do {
    got = ::recv(client, answer.data(), answer.size(), 0);
  } while (got > 0);
  require(got == 0 || errno != EAGAIN);
  ::close(client);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(http, lockbench::fuzz::request)
