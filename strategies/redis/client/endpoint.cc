#include "strategies/redis/client/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace lockbench::redis {
namespace {

constexpr std::string_view kAllowed =
    "redis://[[user]:password@]host[:port][/db], unix://[[user]:password@]/path[?db=N] or "
    "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db]";

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

/// "host", "host:port", "[::1]:port". The port stays what it is if none is given.
tl::expected<void, std::string> parse_address(std::string_view address, std::string& host,
                                              int& port) {
  if (address.starts_with('[')) {  // [::1]:6379
    const std::size_t bracket = address.find(']');
    if (bracket == std::string_view::npos) return unusable("a [ without its ]");
    host = address.substr(1, bracket - 1);
    address.remove_prefix(bracket + 1);
    if (!address.empty() && address[0] != ':') return unusable("unexpected text after the host");
  } else {
    host = address.substr(0, address.find(':'));
    address.remove_prefix(host.size());
  }
  if (host.empty()) return unusable("the host is missing");
  if (address.empty()) return {};
  const auto number = parse_number(address.substr(1), 65535);
  if (!number || *number == 0) return unusable("the port must be a number from 1 to 65535");
  port = *number;
  return {};
}

tl::expected<Endpoint, std::string> with_database(std::string_view text, Endpoint endpoint) {
  if (text.empty()) return endpoint;
  const auto database = parse_number(text, 1'000'000);
  if (!database) return unusable("the database must be a number");
  endpoint.database = *database;
  return endpoint;
}

/// What comes after the next of these; `text` keeps what comes before it.
std::string_view cut_at(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

tl::expected<Endpoint, std::string> parse_tcp(std::string_view address, Endpoint endpoint) {
  const std::string_view database = cut_at(address, '/');
  auto parsed = parse_address(address, endpoint.host, endpoint.port);
  if (!parsed) return tl::unexpected(parsed.error());
  return with_database(database, std::move(endpoint));
}

tl::expected<Endpoint, std::string> parse_sentinels(std::string_view addresses, Endpoint endpoint) {
  constexpr std::size_t kMost = 32;
  std::string_view name = cut_at(addresses, '/');
  const std::string_view database = cut_at(name, '/');
  if (name.empty()) return unusable("the master's name is missing");
  // Else a password with a / in it would be taken for a name, and shown.
  if (name.find('@') != std::string_view::npos) {
    return unusable("an @ in the master's name; a / in a password is written %2F");
  }
  endpoint.master = name;
  bool more = true;
  while (more) {
    more = addresses.find(',') != std::string_view::npos;
    const std::string_view rest = cut_at(addresses, ',');
    Endpoint::Sentinel sentinel;
    auto parsed = parse_address(addresses, sentinel.host, sentinel.port);
    if (!parsed) return tl::unexpected(parsed.error());
    if (endpoint.sentinels.size() == kMost) return unusable("at most 32 sentinels");
    endpoint.sentinels.push_back(std::move(sentinel));
    addresses = rest;
  }
  return with_database(database, std::move(endpoint));
}

std::string display_address(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

std::string Endpoint::display() const {
  if (!path.empty()) return "unix:" + path;
  if (sentinels.empty()) return display_address(host, port);
  std::string all;
  for (const Sentinel& sentinel : sentinels) {
    all += (all.empty() ? "" : ",") + display_address(sentinel.host, sentinel.port);
  }
  return all + "/" + master;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view url) {
  Endpoint endpoint;
  struct Kind {
    std::string_view scheme;
    tl::expected<Endpoint, std::string> (*parse)(std::string_view rest, Endpoint endpoint);
  };
  constexpr Kind kKinds[] = {
      {"redis://", parse_tcp}, {"unix://", parse_unix}, {"redis+sentinel://", parse_sentinels}};
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) {
    return url.starts_with(one.scheme);
  });
  if (kind == std::end(kKinds)) return unusable("not a Redis URL");
  std::string_view rest = url.substr(kind->scheme.size());
  if (!take_credentials(rest, endpoint)) {
    return unusable("credentials are user:password or :password, percent-encoded");
  }
  return kind->parse(rest, std::move(endpoint));
}

}  // namespace lockbench::redis
