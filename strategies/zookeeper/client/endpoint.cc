#include "strategies/zookeeper/client/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace lockbench::zookeeper {
namespace {

constexpr std::string_view kScheme = "zk://";

tl::unexpected<std::string> unusable(std::string_view why) {
  return tl::unexpected(fmt::format(
      "{}; allowed: [zk://[user:password@]]host[:port][,host[:port]...][/chroot]", why));
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned code = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(code);
    i += 2;
  }
  return decoded;
}

/// Takes "user:password@" off the front of `rest`. False if it is malformed.
bool take_credentials(std::string_view& rest, Endpoint& endpoint) {
  const std::size_t at = rest.substr(0, rest.find('/')).rfind('@');
  if (at == std::string_view::npos) return rest.find('@') == std::string_view::npos;
  const std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = credentials.find(':');
  if (colon == std::string_view::npos) return false;
  const auto user = percent_decode(credentials.substr(0, colon));
  const auto password = percent_decode(credentials.substr(colon + 1));
  if (!user || user->empty() || user->find(':') != std::string::npos) return false;
  if (!password || password->empty()) return false;
  endpoint.user = *user;
  endpoint.password = *password;
  return true;
}

/// With its port, which is 2181 where none is given; the error says what is wrong.
tl::expected<std::string, std::string_view> parse_server(std::string_view text) {
  if (text.find_first_of(" \t@%") != std::string_view::npos) {
    return tl::unexpected<std::string_view>("not the address of a ZooKeeper");
  }
  const bool ipv6 = text.starts_with('[');
  const std::size_t end = ipv6 ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  if (end == 0 && ipv6) return tl::unexpected<std::string_view>("a [ without its ]");
  const std::string_view host = text.substr(0, end);
  std::string_view port = text.substr(end);
  if (host.empty() || host == "[]") return tl::unexpected<std::string_view>("a host is missing");
  if (port.empty()) return fmt::format("{}:2181", host);
  if (!port.starts_with(':')) {
    return tl::unexpected<std::string_view>("unexpected text after a host");
  }
  port.remove_prefix(1);
  std::uint16_t number = 0;
  const auto [last, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || last != port.data() + port.size() || number == 0) {
    return tl::unexpected<std::string_view>("a port must be a number from 1 to 65535");
  }
  return fmt::format("{}:{}", host, number);
}

bool is_good_chroot(std::string_view chroot) {
  if (chroot.find("//") != std::string_view::npos || chroot.ends_with('/')) return false;
  return std::all_of(chroot.begin(), chroot.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

std::string Endpoint::display() const {
  return fmt::format("{}{}", fmt::join(servers, ","), chroot);
}

std::string Endpoint::connect_string() const {
  std::string text = display();
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

int Endpoint::addresses() const {
  int count = 0;
  for (const std::string& server : servers) {
    in_addr ignored{};
    const std::string host = server.substr(0, server.rfind(':'));
    // A name may well stand for two, such as localhost.
    const bool literal = host.starts_with('[') || inet_pton(AF_INET, host.c_str(), &ignored) == 1;
    count += literal ? 1 : 2;
  }
  return count;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  std::string_view rest = text;
  if (rest.starts_with(kScheme)) {
    rest.remove_prefix(kScheme.size());
    if (!take_credentials(rest, endpoint)) {
      return unusable("user and password must both be there and percent-encoded");
    }
  } else if (rest.find("://") != std::string_view::npos) {
    return unusable("not the address of a ZooKeeper");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.chroot = rest.substr(slash);
  if (endpoint.chroot == "/") endpoint.chroot.clear();
  if (!is_good_chroot(endpoint.chroot)) return unusable("not a path to begin with");
  std::string_view servers = rest.substr(0, slash);
  // One more comma than there are servers ends it.
  for (bool more = true; more;) {
    const std::size_t comma = servers.find(',');
    more = comma != std::string_view::npos;
    auto server = parse_server(servers.substr(0, comma));
    if (!server) return unusable(server.error());
    endpoint.servers.push_back(*std::move(server));
    if (more) servers.remove_prefix(comma + 1);
  }
  return endpoint;
}

}  // namespace lockbench::zookeeper
