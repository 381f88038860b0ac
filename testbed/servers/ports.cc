#include "testbed/servers/ports.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <fstream>
#include <optional>
#include <random>
#include <system_error>

#include "testbed/servers/authority.h"

namespace lockbench::testbed {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

int first_client_port() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

tl::unexpected<std::string> step_error(std::string_view what, const std::error_code& error) {
  const bool late = error == asio::error::timed_out;
  return tl::unexpected(fmt::format("{}: {}", what, late ? "timed out" : error.message()));
}

/// Not opened by asio: processes started meanwhile would inherit it.
template <class Socket>
std::error_code open_socket(Socket& socket, const typename Socket::protocol_type& protocol) {
  const int file = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return {errno, std::system_category()};
  std::error_code failed;
  socket.assign(protocol, file, failed);
  if (failed) close(file);
  return failed;
}

/// The bound port, chosen by the kernel if `port` is 0.
tl::expected<std::uint16_t, std::string> try_port(std::uint16_t port) try {
  asio::io_context io(1);
  tcp::socket probe(io);
  std::error_code failed = open_socket(probe, tcp::v4());
  if (failed) return step_error("socket", failed);
  probe.bind({asio::ip::address_v4::loopback(), port}, failed);
  if (failed) return step_error("no free loopback port", failed);
  return probe.local_endpoint().port();
} catch (const std::system_error& error) {
  return tl::unexpected<std::string>(error.what());
}

using AnySocket = asio::generic::stream_protocol::socket;

/// Runs the operation that `begin` starts, to its end or to the deadline. After a timeout `io` must
/// not run again: the operation refers to this call.
std::error_code run_step(asio::io_context& io, Clock::time_point deadline,
                         const std::function<void(std::function<void(std::error_code)>)>& begin) {
  std::optional<std::error_code> ended;
  begin([&](std::error_code error) { ended = error; });
  io.restart();
  while (!ended && io.run_one_until(deadline) > 0) {
  }
  return ended.value_or(asio::error::timed_out);
}

/// Sends the request by a stream and reads the answer.
template <class Stream>
tl::expected<std::string, std::string> ask_by(Stream& stream, asio::io_context& io,
                                              std::string_view request, Clock::time_point deadline,
                                              const std::function<bool(std::string_view)>& whole) {
  const auto sent = run_step(io, deadline, [&](auto done) {
    asio::async_write(stream, asio::buffer(request),
                      [done](std::error_code error, std::size_t) { done(error); });
  });
  if (sent) return step_error("send", sent);
  std::string answer;
  std::array<char, 512> bytes{};
  while (true) {
    std::size_t size = 0;
    const auto got = run_step(io, deadline, [&](auto done) {
      stream.async_read_some(asio::buffer(bytes),
                             [done, &size](std::error_code error, std::size_t read) {
                               size = read;
                               done(error);
                             });
    });
    answer.append(bytes.data(), size);
    if (got == asio::error::eof) return answer;
    if (got) return step_error("answer", got);
    if (whole(answer)) return answer;
  }
}

/// ask_until() for any address; without TLS if `tls` is null. asio throws with too many open files.
tl::expected<std::string, std::string> ask_at(const AnySocket::endpoint_type& address,
                                              std::string_view request,
                                              std::chrono::milliseconds within,
                                              const std::function<bool(std::string_view)>& whole,
                                              const TlsFiles* tls, const Login& login) try {
  const auto deadline = Clock::now() + within;
  asio::io_context io(1);
  AnySocket socket(io);
  std::error_code failed = open_socket(socket, address.protocol());
  if (failed) return step_error("socket", failed);
  failed = run_step(io, deadline, [&](const auto& done) { socket.async_connect(address, done); });
  if (failed) return step_error("connect", failed);
  // Sends the login alone: memcached refuses some commands that follow another one immediately.
  const auto ask_after_login = [&](auto& stream) {
    if (!login.line.empty()) {
      auto answer = ask_by(stream, io, login.line, deadline,
                           [](std::string_view text) { return text.ends_with("\r\n"); });
      if (!answer || *answer != login.accepted) return answer;
    }
    return ask_by(stream, io, request, deadline, whole);
  };
  if (tls == nullptr) return ask_after_login(socket);
  // Trusts any server, for tests with a bad certificate.
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.use_certificate_file(tls->certificate, asio::ssl::context::pem, failed);
  if (!failed) context.use_private_key_file(tls->key, asio::ssl::context::pem, failed);
  if (failed) return tl::unexpected("TLS: cannot use " + tls->certificate.string());
  asio::ssl::stream<AnySocket&> session(socket, context);
  failed = run_step(io, deadline, [&](const auto& done) {
    session.async_handshake(asio::ssl::stream_base::client, done);
  });
  if (failed) return step_error("TLS", failed);
  return ask_after_login(session);
} catch (const std::system_error& error) {
  return tl::unexpected<std::string>(error.what());
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
    if (std::ranges::find(ports, *port) == ports.end()) {
      ports.push_back(*port);
    } else if (++repeated == kRepetitions) {
      return tl::unexpected(fmt::format("port {} is proposed repeatedly", *port));
    }
  }
  return ports;
}

tl::expected<std::string, std::string> ask_until(std::uint16_t port, std::string_view request,
                                                 std::chrono::milliseconds within,
                                                 const std::function<bool(std::string_view)>& whole,
                                                 const TlsFiles* tls, const Login& login) {
  const tcp::endpoint address(asio::ip::address_v4::loopback(), port);
  return ask_at(address, request, within, whole, tls, login);
}

tl::expected<std::string, std::string> ask_until(
    const std::filesystem::path& socket, std::string_view request, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole) {
  if (socket.native().size() >= sizeof(sockaddr_un::sun_path)) {
    return tl::unexpected(
        fmt::format("{} is too long for a unix socket: set a shorter TMPDIR", socket.native()));
  }
  return ask_at(asio::local::stream_protocol::endpoint(socket.native()), request, within, whole,
                nullptr, {});
}

}  // namespace lockbench::testbed
