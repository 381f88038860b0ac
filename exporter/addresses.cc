#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "exporter/http_endpoint.h"
#include "strategies/number.h"
#include "strategies/transport/lookup.h"

namespace lockbench::exporter {
namespace {

// Connections waiting to be accepted: a burst of them must not crowd out a scrape.
constexpr int kBacklog = 1024;

sockaddr* raw(PeerAddress& address) { return reinterpret_cast<sockaddr*>(&address.storage); }

bool fill(const ListenAddress& address, PeerAddress& filled) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(filled.storage);
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    filled.size = sizeof v4;
    return true;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(filled.storage);
  if (inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  filled.size = sizeof v6;
  return true;
}

}  // namespace

tl::expected<ListenAddress, std::string> parse_listen_address(std::string_view text) {
  const auto refuse = [&] {
    return tl::unexpected(fmt::format(
        "\"{}\" is not an address to listen on, such as 127.0.0.1:9464 or [::1]:9464", text));
  };
  const std::size_t colon = text.rfind(':');
  std::string_view host = colon == std::string_view::npos ? "" : text.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const auto number = parse_number<std::uint16_t>(port);
  if (!number) return refuse();
  ListenAddress address{.port = *number};
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  if (brackets != (host.find(':') != std::string_view::npos)) return refuse();
  if (!host.empty() && host != "localhost") address.host = host;
  if (PeerAddress unused; (brackets && host.empty()) || !fill(address, unused)) return refuse();
  return address;
}

tl::expected<int, std::string> listen_on(ListenAddress& address) {
  PeerAddress wanted;
  if (!fill(address, wanted)) return tl::unexpected(address.host + " is not an IP address");
  const int listener =
      ::socket(wanted.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Allows a port whose last connections are in TIME_WAIT.
  const int on = 1;
  if (listener >= 0 && ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(listener, raw(wanted), wanted.size) == 0 && ::listen(listener, kBacklog) == 0) {
    PeerAddress bound{.size = sizeof bound.storage};
    getsockname(listener, raw(bound), &bound.size);
    // Both kinds of address have the port in the same place.
    address.port = ntohs(reinterpret_cast<sockaddr_in&>(bound.storage).sin_port);
    return listener;
  }
  const int error = errno;
  if (listener >= 0) ::close(listener);
  return tl::unexpected(
      fmt::format("cannot listen on {}: {}", address.to_string(),
                  error == EADDRINUSE ? "another program listens there" : std::strerror(error)));
}

}  // namespace lockbench::exporter
