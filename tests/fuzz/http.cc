#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

/// The answer, within that time, to a client that sends these bytes and then nothing more.
std::string answer_to(std::string_view bytes, std::chrono::milliseconds patience) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(client >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint().address().port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
  // Close without TIME_WAIT: a million of those would use up all ports.
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  // libFuzzer's alarm interrupts calls.
  while (::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    require(errno == EINTR);
  }
  // Only now, as the limit must not apply to connecting.
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  static_cast<void>(::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ::shutdown(client, SHUT_WR);
  std::string answer;
  std::array<char, 4096> piece{};
  ssize_t got = 0;
  while ((got = ::recv(client, piece.data(), piece.size(), 0)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(client);
  return answer;
}

/// After any request, the server must answer the next client. It waits for the rest of an
/// incomplete request for seconds, so this client leaves earlier. After the first inputs (the
/// corpus), only one of 16 is followed by a next client.
void request(std::string_view given) {
  answer_to(std::string(given) + "\r\n\r\n", std::chrono::milliseconds(2));
  static int asked = 0;
  if (++asked > 100 && asked % 16 != 0) return;
  const std::string page =
      answer_to("GET /metrics HTTP/1.0\r\n\r\n", std::chrono::milliseconds(10'000));
  require(page.find("lockbench_clients 1") != std::string::npos);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(http, lockbench::fuzz::request)
