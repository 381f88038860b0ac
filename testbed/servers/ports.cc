#include "testbed/servers/ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <span>

#include "testbed/process/wire.h"

namespace lockbench::testbed {
namespace {

using Clock = std::chrono::steady_clock;

class ProbeSocket {
 public:
  explicit ProbeSocket(int family, int flags = 0)
      : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)) {}
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
  const ProbeSocket probe(AF_INET);
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

tl::expected<void, std::string> connect_to(int fd, const sockaddr* address, socklen_t length,
                                           Clock::time_point deadline) {
  if (fd < 0) return system_error("socket");
  if (connect(fd, address, length) != 0 && errno != EINPROGRESS) return system_error("connect");
  if (wire::await(fd, POLLOUT, deadline) == 0) {
    return tl::unexpected<std::string>("connect: timed out");
  }
  int refusal = 0;
  socklen_t size = sizeof refusal;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &refusal, &size);
  if (refusal == 0) return {};
  return tl::unexpected(fmt::format("connect: {}", std::strerror(refusal)));
}

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* session) const { SSL_free(session); }
};

/// A connected socket that does not block, and TLS over it once it is secured.
class Line {
 public:
  using Moved = tl::expected<std::size_t, std::string>;  ///< bytes

  Line(int fd, Clock::time_point deadline) : fd_(fd), deadline_(deadline) {}

  /// Trusts any server, so that tests can have one with a bad certificate.
  tl::expected<void, std::string> secure(const TlsFiles& files) {
    const std::unique_ptr<SSL_CTX, FreeTls> context(SSL_CTX_new(TLS_client_method()));
    if (!context ||
        SSL_CTX_use_certificate_file(context.get(), files.certificate.c_str(), SSL_FILETYPE_PEM) !=
            1 ||
        SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      return tl::unexpected("TLS: cannot use " + files.certificate.string());
    }
    session_.reset(SSL_new(context.get()));
    if (!session_ || SSL_set_fd(session_.get(), fd_) != 1) {
      return tl::unexpected<std::string>("TLS: no session");
    }
    const auto shaken = insist(POLLOUT, [this] { return SSL_connect(session_.get()); });
    if (!shaken) return tl::unexpected("TLS: " + shaken.error());
    return {};
  }

  Moved send(std::string_view bytes) {
    return insist(POLLOUT, [&]() -> ssize_t {
      if (!session_) return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      return SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
    });
  }

  /// 0: the other side has closed.
  Moved receive(std::span<char> room) {
    return insist(POLLIN, [&]() -> ssize_t {
      if (!session_) return recv(fd_, room.data(), room.size(), 0);
      return SSL_read(session_.get(), room.data(), static_cast<int>(room.size()));
    });
  }

 private:
  /// Repeats a call, of OpenSSL if there is a session, whenever the socket is ready for it.
  Moved insist(short events, const std::function<ssize_t()>& call) {
    while (true) {
      ERR_clear_error();
      const ssize_t done = call();
      if (done > 0) return static_cast<std::size_t>(done);
      if (session_) {
        const int why = SSL_get_error(session_.get(), static_cast<int>(done));
        if (why == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
          const char* const reason = ERR_reason_error_string(ERR_peek_error());
          return tl::unexpected<std::string>(reason == nullptr ? "the connection ended" : reason);
        }
        events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      } else if (done == 0) {
        return std::size_t{0};
      } else if (errno != EAGAIN) {
        return tl::unexpected<std::string>(std::strerror(errno));
      }
      if (wire::await(fd_, events, deadline_) == 0) {
        return tl::unexpected<std::string>("timed out");
      }
    }
  }

  const int fd_;
  const Clock::time_point deadline_;
  std::unique_ptr<SSL, FreeTls> session_;
};

/// ask_until() of any address; no `tls`: without.
tl::expected<std::string, std::string> ask_at(const sockaddr* address, socklen_t length,
                                              std::string_view request,
                                              std::chrono::milliseconds within,
                                              const std::function<bool(std::string_view)>& whole,
                                              const TlsFiles* tls) {
  const auto deadline = Clock::now() + within;
  const ProbeSocket connection(address->sa_family, SOCK_NONBLOCK);
  if (auto connected = connect_to(connection.fd(), address, length, deadline); !connected) {
    return tl::unexpected(connected.error());
  }
  Line line(connection.fd(), deadline);
  if (tls != nullptr) {
    if (auto secured = line.secure(*tls); !secured) return tl::unexpected(secured.error());
  }
  while (!request.empty()) {
    const auto sent = line.send(request);
    if (!sent) return tl::unexpected("send: " + sent.error());
    request.remove_prefix(*sent);
  }
  std::string answer;
  while (true) {
    std::array<char, 512> bytes{};
    const auto got = line.receive(bytes);
    if (!got) return tl::unexpected("answer: " + got.error());
    answer.append(bytes.data(), *got);
    if (*got == 0 || whole(answer)) return answer;
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

tl::expected<std::string, std::string> ask_until(std::uint16_t port, std::string_view request,
                                                 std::chrono::milliseconds within,
                                                 const std::function<bool(std::string_view)>& whole,
                                                 const TlsFiles* tls) {
  const sockaddr_in address = loopback(port);
  return ask_at(reinterpret_cast<const sockaddr*>(&address), sizeof address, request, within, whole,
                tls);
}

tl::expected<std::string, std::string> ask_until(
    const std::filesystem::path& socket, std::string_view request, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& path = socket.native();
  if (path.size() >= sizeof address.sun_path) {
    return tl::unexpected(
        fmt::format("{} is too long for a unix socket: set a shorter TMPDIR", path));
  }
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  return ask_at(reinterpret_cast<const sockaddr*>(&address), sizeof address, request, within, whole,
                nullptr);
}

}  // namespace lockbench::testbed
