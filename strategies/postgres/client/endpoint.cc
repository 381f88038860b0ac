#include "strategies/postgres/client/endpoint.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <map>
#include <memory>
#include <optional>

#include "strategies/url.h"

namespace lockbench::postgres {
namespace {

// libpq reads the URL itself; this gives errors the words that the other stores use.
const UrlForm form{.what = "a PostgreSQL URL",
                   .allowed =
                       "postgresql://[user[:password]@]host[:port]/database or "
                       "\"host=... port=... dbname=... user=... password=...\""};

using Parts = std::map<std::string, std::string, std::less<>>;

/// Nothing if libpq does not understand it; libpq's own message might quote a secret.
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
  const std::string host = value("host").empty() ? value("hostaddr") : value("host");
  if (host.empty()) return fmt::format("local socket:{}", port);
  if (host.starts_with('/') || host.starts_with('@')) return fmt::format("unix:{}:{}", host, port);
  return display_address(host, port);
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn) {
  const bool uri = dsn.starts_with("postgresql://") || dsn.starts_with("postgres://");
  if (!uri && dsn.find('=') == std::string::npos) return invalid_url("not a PostgreSQL URL", form);
  const auto parts = parse(dsn);
  if (!parts) return invalid_url("not a PostgreSQL URL", form);
  // An unencoded @ or / in the password: libpq would take a part of it for one of these.
  for (const char* name : {"host", "port", "dbname", "user"}) {
    const auto part = parts->find(name);
    const bool torn = part != parts->end() && part->second.find('@', 1) != std::string::npos;
    if (uri && torn) return invalid_url("user and password must be percent-encoded", form);
  }
  const auto port = parts->find("port");
  if (port != parts->end() && port->second.find_first_not_of("0123456789,") != std::string::npos) {
    return invalid_url("the port must be a number", form);
  }
  return Endpoint{.dsn = dsn, .display = display_of(*parts)};
}

}  // namespace lockbench::postgres
