#include "strategies/postgres/client/endpoint.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "strategies/url.h"

namespace lockbench::postgres {
namespace {

// libpq reads the URL itself; this words its errors as for the other stores.
const UrlForm form{.what = "a PostgreSQL URL",
                   .allowed =
                       "postgresql://[user[:password]@]host[:port]/database or "
                       "\"host=... port=... dbname=... user=... password=...\""};

/// libpq's settings by their names.
using Settings = std::map<std::string, std::string, std::less<>>;

/// The settings of a DSN, secrets included; nothing if libpq does not understand it.
std::optional<Settings> settings_of(const std::string& dsn) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(dsn.c_str(), &error), PQconninfoFree);
  // libpq's own message might quote a secret.
  PQfreemem(error);
  if (!options) return std::nullopt;
  Settings parts;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) parts[option->keyword] = option->val;
  }
  return parts;
}

std::string value_of(const Settings& parts, std::string_view name) {
  const auto found = parts.find(name);
  return found == parts.end() ? std::string() : found->second;
}

/// If both are set, libpq connects to the address, not to the host.
std::string host_of(const Settings& parts) {
  const std::string address = value_of(parts, "hostaddr");
  return address.empty() ? value_of(parts, "host") : address;
}

/// Empty for an address, a path and a list.
std::string name_of(const Settings& parts) {
  const std::string host = value_of(parts, "host");
  const bool is_name = value_of(parts, "hostaddr").empty() &&
                       host.find_first_of("/@,:") == std::string::npos &&
                       host.find_first_not_of("0123456789.") != std::string::npos;
  return is_name ? host : std::string();
}

std::string display_of(const Settings& parts) {
  const std::string given_port = value_of(parts, "port");
  const std::string port = given_port.empty() ? "5432" : given_port;
  const std::string host = host_of(parts);
  if (host.empty()) return fmt::format("local socket:{}", port);
  if (host.starts_with('/') || host.starts_with('@')) return fmt::format("unix:{}:{}", host, port);
  return display_address(host, port);
}

struct Taken {
  Settings settings;  ///< libpq's defaults as they were, a service's included
  std::vector<std::string> names;
};

/// Takes libpq's settings out of the environment. The four variables without a setting affect
/// formatting and planning only. The locations of service files stay, for a DSN that names a
/// service.
Taken take() {
  Taken taken;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(PQconndefaults(),
                                                                               PQconninfoFree);
  std::vector<std::string> variables{"PGREQUIRESSL", "PGDATESTYLE", "PGTZ", "PGGEQO"};
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr) taken.settings[option->keyword] = option->val;
    if (option->envvar != nullptr) variables.emplace_back(option->envvar);
  }
  std::ranges::sort(variables);
  for (const std::string& variable : variables) {
    if (std::getenv(variable.c_str()) == nullptr) continue;
    taken.names.push_back(variable);
    unsetenv(variable.c_str());
  }
  return taken;
}

const Taken& environment() {
  static const Taken taken = take();
  return taken;
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn) {
  const bool uri = dsn.starts_with("postgresql://") || dsn.starts_with("postgres://");
  if (!uri && dsn.find('=') == std::string::npos) return invalid_url("not a PostgreSQL URL", form);
  const auto parts = settings_of(dsn);
  if (!parts) return invalid_url("not a PostgreSQL URL", form);
  // With an unencoded @ or / in the password, libpq would take a part of it for one of these.
  for (const char* name : {"host", "port", "dbname", "user"}) {
    const auto part = parts->find(name);
    const bool torn = part != parts->end() && part->second.find('@', 1) != std::string::npos;
    if (uri && torn) return invalid_url("user and password must be percent-encoded", form);
  }
  const auto port = parts->find("port");
  if (port != parts->end() && port->second.find_first_not_of("0123456789,") != std::string::npos) {
    return invalid_url("the port must be a number", form);
  }
  return Endpoint{.dsn = dsn, .display = display_of(*parts), .name = name_of(*parts)};
}

Secrecy secrecy_of(const std::string& dsn) {
  const Settings parts = settings_of(dsn).value_or(Settings{});
  const std::string mode = value_of(parts, "sslmode");
  // The other modes accept a server without TLS.
  if (mode == "require" || mode == "verify-ca" || mode == "verify-full") {
    return {.encryption = "sslmode=" + mode};
  }
  if (value_of(parts, "password").empty() || is_local(host_of(parts))) return {};
  return {.advice = "use sslmode=verify-full"};
}

std::vector<std::string> take_environment() { return environment().names; }

std::string completed(const std::string& dsn) {
  std::optional<Settings> settings = settings_of(dsn);
  if (environment().names.empty() || !settings || settings->contains("service")) return dsn;
  for (const auto& [name, value] : environment().settings) settings->try_emplace(name, value);
  std::string text;
  for (const auto& [name, value] : *settings) {
    text += (text.empty() ? "" : " ") + name + "=" + in_quotes(value, '\'');
  }
  return text;
}

std::string in_quotes(std::string_view text, char quote) {
  std::string whole(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') whole += '\\';
    whole += c;
  }
  return whole + quote;
}

std::int64_t advisory_number(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : key) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace lockbench::postgres
