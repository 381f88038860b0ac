#include "tests/support/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "tests/support/tcp_client.h"

namespace lockbench::test {
namespace {

/// All that the server says; empty if nobody listens.
std::string answer_to(std::uint16_t port, const std::string& request) {
  try {
    TcpClient connection(port);
    connection.send(request);
    return connection.rest();
  } catch (const std::runtime_error&) {
    return "";
  }
}

}  // namespace

double metric_on(const std::string& page, const std::string& series) {
  double value = -1;
  const std::size_t at = page.find("\n" + series);
  if (at == std::string::npos) return value;
  const std::size_t end = page.find('\n', at + 1);
  const std::size_t begin = page.rfind(' ', end) + 1;
  std::from_chars(page.data() + begin, page.data() + std::min(end, page.size()), value);
  return value;
}

HttpReply http_get(std::uint16_t port, const std::string& path) {
  // Not in chunks.
  const std::string received =
      answer_to(port, fmt::format("GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n", path));
  const std::size_t end = received.find("\r\n\r\n");
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  if (end == std::string::npos || end < kStatusAt + 3) return {};
  HttpReply reply{.head = received.substr(0, end), .body = received.substr(end + 4)};
  std::from_chars(received.data() + kStatusAt, received.data() + kStatusAt + 3, reply.status);
  return reply;
}

}  // namespace lockbench::test
