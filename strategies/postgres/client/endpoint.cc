#include "strategies/postgres/client/endpoint.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <map>
#include <memory>
#include <optional>

namespace lockbench::postgres {
namespace {

tl::unexpected<std::string> unusable(std::string_view why) {
  return tl::unexpected(
      fmt::format("{}; allowed: postgresql://[user[:password]@]host[:port]/database or "
                  "\"host=... port=... dbname=... user=... password=...\"",
                  why));
}

using Parts = std::map<std::string, std::string, std::less<>>;

/// Nothing if libpq does not understand it; its own message might quote a secret.
std::optional<Parts> parse(const std::string& dsn) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(dsn.c_str(), &error), PQconninfoFree);
  PQfreemem(error);
  if (!options) return std::nullopt;
  Parts parts;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) parts[option->keyword] = option->val;
  }
  return parts;
}

std::string display_of(const Parts& parts) {
  const auto value = [&](std::string_view name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::string() : found->second;
  };
  const std::string port = value("port").empty() ? "5432" : value("port");
  std::string host = value("host").empty() ? value("hostaddr") : value("host");
  if (host.empty()) return fmt::format("local socket:{}", port);
  if (host.starts_with('/') || host.starts_with('@')) return fmt::format("unix:{}:{}", host, port);
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn) {
  const bool uri = dsn.starts_with("postgresql://") || dsn.starts_with("postgres://");
  if (!uri && dsn.find('=') == std::string::npos) return unusable("not a PostgreSQL DSN");
  const auto parts = parse(dsn);
  if (!parts) return unusable("not a PostgreSQL DSN");
  // libpq would take a part of such a password for the host, the port or the database.
  for (const char* name : {"host", "port", "dbname", "user"}) {
    const auto part = parts->find(name);
    const bool torn = part != parts->end() && part->second.find('@', 1) != std::string::npos;
    if (uri && torn) return unusable("user and password must be percent-encoded");
  }
  const auto port = parts->find("port");
  if (port != parts->end() && port->second.find_first_not_of("0123456789,") != std::string::npos) {
    return unusable("the port must be a number");
  }
  return Endpoint{.dsn = dsn, .display = display_of(*parts)};
}

}  // namespace lockbench::postgres
