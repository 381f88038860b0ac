#include "strategies/memcached/client/endpoint.h"

#include <fmt/format.h>

#include <charconv>

namespace lockbench::memcached {
namespace {

tl::unexpected<std::string> unusable(std::string_view why) {
  return tl::unexpected(fmt::format("{}; allowed: HOST or HOST:PORT", why));
}

}  // namespace

std::string Endpoint::display() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  if (text.find_first_of("/@ \t") != std::string_view::npos) {
    return unusable("not the address of a memcached");
  }
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return unusable("a [ without its ]");
    endpoint.host = text.substr(1, bracket - 1);
    rest = text.substr(bracket + 1);
    if (!rest.empty() && rest[0] != ':') return unusable("unexpected text after the host");
  } else {
    endpoint.host = text.substr(0, text.find(':'));
    rest = text.substr(endpoint.host.size());
  }
  if (endpoint.host.empty()) return unusable("the host is missing");
  if (rest.empty()) return endpoint;
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), endpoint.port);
  if (error != std::errc() || end != rest.data() + rest.size() || endpoint.port == 0) {
    return unusable("the port must be a number from 1 to 65535");
  }
  return endpoint;
}

}  // namespace lockbench::memcached
