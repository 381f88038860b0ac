#include "strategies/etcd/client/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace lockbench::etcd {
namespace {

tl::unexpected<std::string> unusable(std::string_view why) {
  return tl::unexpected(fmt::format(
      "{}; allowed: etcd://[user:password@]host[:port][,host[:port]...], or http://", why));
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned code = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(&text[i + 1], text.data() + i + 3, code, 16);
    if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
    decoded += static_cast<char>(code);
    i += 2;
  }
  return decoded;
}

tl::expected<Address, std::string> parse_address(std::string_view text) {
  Address address;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return unusable("a [ without its ]");
    address.host = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
    if (!text.empty() && text[0] != ':') return unusable("unexpected text after the host");
  } else {
    address.host = text.substr(0, text.find(':'));
    text.remove_prefix(address.host.size());
  }
  if (address.host.empty()) return unusable("the host is missing");
  if (text.empty()) return address;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address.port);
  if (error != std::errc() || end != text.data() + text.size() || address.port == 0) {
    return unusable("the port must be a number from 1 to 65535");
  }
  return address;
}

/// Takes "user:password@" off the front of `rest`. False if it is malformed.
bool take_credentials(std::string_view& rest, Endpoint& endpoint) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = credentials.find(':');
  // Unencoded, such a character may as well have ended the password.
  if (colon == std::string_view::npos || credentials.find_first_of("@/,") != credentials.npos) {
    return false;
  }
  const auto user = percent_decode(credentials.substr(0, colon));
  const auto password = percent_decode(credentials.substr(colon + 1));
  if (!user || !password || user->empty() || password->empty()) return false;
  endpoint.user = *user;
  endpoint.password = *password;
  return true;
}

bool is_numeric(const std::string& host, int family) {
  in6_addr parsed{};
  return inet_pton(family, host.c_str(), &parsed) == 1;
}

}  // namespace

std::string Address::display() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Address::target() const {
  if (is_numeric(host, AF_INET)) return "ipv4:" + display();
  if (is_numeric(host, AF_INET6)) return "ipv6:" + display();
  return "dns:///" + display();
}

std::string Endpoint::display() const {
  std::string text;
  for (const Address& member : members) {
    if (!text.empty()) text += ',';
    text += member.display();
  }
  return text;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url) {
  if (url.starts_with("https://")) return unusable("TLS is not supported");
  for (const std::string_view scheme : {"etcd://", "http://"}) {
    if (url.starts_with(scheme)) {
      url.remove_prefix(scheme.size());
      break;
    }
  }
  Endpoint endpoint;
  if (!take_credentials(url, endpoint)) {
    return unusable("credentials are user:password, percent-encoded");
  }
  if (url.ends_with('/')) url.remove_suffix(1);
  if (url.find_first_of("/ \t=") != std::string_view::npos) {
    return unusable("not the address of an etcd");
  }
  while (true) {
    const std::size_t comma = url.find(',');
    std::string_view member = url.substr(0, comma);
    auto address = parse_address(member);
    if (!address) return tl::unexpected(address.error());
    endpoint.members.push_back(*std::move(address));
    if (comma == std::string_view::npos) return endpoint;
    url.remove_prefix(comma + 1);
  }
}

}  // namespace lockbench::etcd
