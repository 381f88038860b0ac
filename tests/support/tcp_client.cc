#include "tests/support/tcp_client.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace lockbench::test {
namespace {

using Clock = std::chrono::steady_clock;

bool await(int fd, short events, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd file{fd, events, 0};
  return poll(&file, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

/// The server's whole answer; empty if nothing listens.
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

TcpClient::TcpClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what the sockets want
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    throw std::runtime_error("cannot connect");
  }
}

TcpClient::~TcpClient() { close(fd_); }

std::size_t TcpClient::send(std::string_view text, std::chrono::milliseconds within) {
  std::size_t sent = 0;
  while (sent < text.size() && await(fd_, POLLOUT, Clock::now() + within)) {
    const ssize_t now =
        ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && errno != EAGAIN) break;
    if (now > 0) sent += static_cast<std::size_t>(now);
  }
  return sent;
}

void TcpClient::finish_sending() { shutdown(fd_, SHUT_WR); }

bool TcpClient::read_some(TimePoint deadline) {
  if (end_ != End::open || !await(fd_, POLLIN, deadline)) return false;
  std::array<char, 65'536> bytes{};
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
  if (got > 0) read_.append(bytes.data(), static_cast<std::size_t>(got));
  if (got == 0) end_ = End::closed;
  if (got < 0) end_ = End::reset;
  return got > 0;
}

std::string TcpClient::lines(std::size_t count, std::chrono::milliseconds within) {
  const auto deadline = Clock::now() + within;
  std::size_t found = 0, at = 0;
  while (found < count) {
    const std::size_t line_end = read_.find('\n', at);
    if (line_end == std::string::npos) {
      if (!read_some(deadline)) break;
      continue;
    }
    at = line_end + 1;
    ++found;
  }
  std::string result = read_.substr(0, at);
  read_.erase(0, at);
  return result;
}

std::string TcpClient::rest(std::chrono::milliseconds within) {
  const auto deadline = Clock::now() + within;
  while (read_some(deadline)) continue;
  return std::exchange(read_, {});
}

TcpClient::End TcpClient::end(std::chrono::milliseconds within) {
  const auto deadline = Clock::now() + within;
  while (read_some(deadline)) read_.clear();
  return end_;
}

std::string TcpClient::ask(const std::string& command, std::chrono::milliseconds within) {
  send(command + "\r\n");
  const std::string line = lines(1, within);
  return line.substr(0, line.find('\r'));
}

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
  // HTTP/1.0, to get no chunks.
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
