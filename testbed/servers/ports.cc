#include "testbed/servers/ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

namespace lockbench::testbed {
namespace {

using Clock = std::chrono::steady_clock;

class ProbeSocket {
 public:
  explicit ProbeSocket(int flags) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)) {}
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;
  ~ProbeSocket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

tl::unexpected<std::string> system_error(std::string_view what) {
  return tl::unexpected(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// The port bound, which the kernel chooses if `port` is 0.
tl::expected<std::uint16_t, std::string> try_port(std::uint16_t port) {
  const ProbeSocket probe(0);
  sockaddr_in address = loopback(port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (probe.fd() < 0) return system_error("socket");
  if (bind(probe.fd(), generic, size) != 0) return system_error("no free loopback port");
  if (getsockname(probe.fd(), generic, &size) != 0) return system_error("getsockname");
  return ntohs(address.sin_port);
}

int first_client_port() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

bool await(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd file{fd, events, 0};
    const int ready = poll(&file, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

}  // namespace

tl::expected<std::uint16_t, std::string> free_loopback_port() {
  constexpr int kLowest = 10'000;
  constexpr int kAttempts = 50;
  const int end = std::min(first_client_port(), 65'536);
  if (end > kLowest) {
    std::random_device random;
    std::uniform_int_distribution<int> any(kLowest, end - 1);
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto port = try_port(static_cast<std::uint16_t>(any(random)));
      if (port) return port;
    }
  }
  return try_port(0);
}

tl::expected<std::vector<std::uint16_t>, std::string> distinct_ports(const PortChooser& choose,
                                                                     std::size_t count) {
  constexpr int kRepetitions = 50;
  std::vector<std::uint16_t> ports;
  for (int repeated = 0; ports.size() < count;) {
    const auto port = choose();
    if (!port) return tl::unexpected(port.error());
    if (std::find(ports.begin(), ports.end(), *port) == ports.end()) {
      ports.push_back(*port);
    } else if (++repeated == kRepetitions) {
      return tl::unexpected(fmt::format("port {} is proposed again and again", *port));
    }
  }
  return ports;
}

tl::expected<std::string, std::string> ask_until(
    std::uint16_t port, std::string_view request, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole) {
  const auto deadline = Clock::now() + within;
  const ProbeSocket connection(SOCK_NONBLOCK);
  const int fd = connection.fd();
  if (fd < 0) return system_error("socket");
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return system_error("connect");
  }
  if (!await(fd, POLLOUT, deadline)) return tl::unexpected<std::string>("connect: timed out");
  int refusal = 0;
  socklen_t size = sizeof refusal;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &refusal, &size);
  if (refusal != 0) {
    return tl::unexpected(fmt::format("connect: {}", std::strerror(refusal)));
  }
  while (!request.empty()) {
    if (!await(fd, POLLOUT, deadline)) return tl::unexpected<std::string>("send: timed out");
    const ssize_t sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return system_error("send");
    request.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  std::string answer;
  while (await(fd, POLLIN, deadline)) {
    std::array<char, 512> bytes{};
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0) return system_error("recv");
    answer.append(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0 || whole(answer)) return answer;
  }
  return tl::unexpected<std::string>("no answer in time");
}

tl::expected<std::string, std::string> ask_line(std::uint16_t port, std::string_view request,
                                                std::chrono::milliseconds within) {
  constexpr std::string_view kLineEnds = "\r\n";
  auto answer = ask_until(port, request, within, [&](std::string_view text) {
    return text.find_first_of(kLineEnds) != std::string_view::npos;
  });
  if (answer) answer->resize(std::min(answer->size(), answer->find_first_of(kLineEnds)));
  return answer;
}

}  // namespace lockbench::testbed
