#include "strategies/redis/endpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace lockbench::redis {
namespace {

constexpr std::string_view kAllowed =
    "redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=N]";

tl::unexpected<std::string> unusable(std::string_view why) {
  return tl::unexpected(fmt::format("{}; allowed: {}", why, kAllowed));
}

/// Nothing for text that is not a number or out of range.
std::optional<int> parse_number(std::string_view text, int max) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > max) return std::nullopt;
  return number;
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

/// Takes "user:password@" off the front of `rest`. False if it is malformed.
bool take_credentials(std::string_view& rest, Endpoint& endpoint) {
  const std::size_t at = rest.substr(0, rest.find('/')).rfind('@');
  if (at == std::string_view::npos) return true;
  const std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = credentials.find(':');
  if (colon == std::string_view::npos) return false;
  const auto user = percent_decode(credentials.substr(0, colon));
  const auto password = percent_decode(credentials.substr(colon + 1));
  if (!user || !password || password->empty()) return false;
  endpoint.user = *user;
  endpoint.password = *password;
  return true;
}

tl::expected<Endpoint, std::string> parse_unix(std::string_view rest, Endpoint endpoint) {
  const std::size_t question = rest.find('?');
  endpoint.path = rest.substr(0, question);
  if (!endpoint.path.starts_with('/')) return unusable("a unix socket needs an absolute path");
  // The size of sockaddr_un's path, less its final zero.
  if (endpoint.path.size() > 107)
    return unusable("a unix socket's path has at most 107 characters");
  if (question == std::string_view::npos) return endpoint;
  std::string_view query = rest.substr(question + 1);
  if (!query.starts_with("db=")) return unusable("the only parameter is db=N");
  const auto database = parse_number(query.substr(3), 1'000'000);
  if (!database) return unusable("the database must be a number");
  endpoint.database = *database;
  return endpoint;
}

tl::expected<Endpoint, std::string> parse_tcp(std::string_view rest, Endpoint endpoint) {
  const std::size_t slash = rest.find('/');
  std::string_view address = rest.substr(0, slash);
  if (address.starts_with('[')) {  // [::1]:6379
    const std::size_t bracket = address.find(']');
    if (bracket == std::string_view::npos) return unusable("a [ without its ]");
    endpoint.host = address.substr(1, bracket - 1);
    address.remove_prefix(bracket + 1);
    if (!address.empty() && address[0] != ':') return unusable("unexpected text after the host");
  } else {
    endpoint.host = address.substr(0, address.find(':'));
    address.remove_prefix(endpoint.host.size());
  }
  if (endpoint.host.empty()) return unusable("the host is missing");
  if (!address.empty()) {
    const auto port = parse_number(address.substr(1), 65535);
    if (!port || *port == 0) return unusable("the port must be a number from 1 to 65535");
    endpoint.port = *port;
  }
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    const auto database = parse_number(rest.substr(slash + 1), 1'000'000);
    if (!database) return unusable("the database must be a number");
    endpoint.database = *database;
  }
  return endpoint;
}

}  // namespace

std::string Endpoint::display() const {
  if (!path.empty()) return "unix:" + path;
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url) {
  Endpoint endpoint;
  constexpr std::string_view kTcp = "redis://", kUnix = "unix://";
  const bool tcp = url.starts_with(kTcp);
  if (!tcp && !url.starts_with(kUnix)) return unusable("not a Redis URL");
  std::string_view rest = url.substr(tcp ? kTcp.size() : kUnix.size());
  if (!take_credentials(rest, endpoint)) {
    return unusable("credentials are user:password or :password, percent-encoded");
  }
  return tcp ? parse_tcp(rest, std::move(endpoint)) : parse_unix(rest, std::move(endpoint));
}

}  // namespace lockbench::redis
