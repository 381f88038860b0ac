#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/store.h"

namespace lockbench::postgres {

/// One PostgreSQL database, named by a libpq URI or key=value string ("DSN").
struct Endpoint {
  std::string dsn;  ///< with secrets: for libpq only
  /// "127.0.0.1:5432" or "unix:/run/postgresql:5432": without credentials.
  std::string display;
  /// Of its host, to be looked up before libpq is asked, which would block; empty if there is none.
  /// A list of hosts is left to libpq.
  std::string name;
};

/// The error says what is wrong and what is allowed, and never repeats the DSN, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn);

/// For a DSN that parse_endpoint accepts: what its sslmode promises.
Secrecy secrecy_of(const std::string& dsn);

/// libpq's settings by their names.
using Settings = std::map<std::string, std::string, std::less<>>;
/// Those of a DSN, secrets included; nothing if libpq does not understand it.
std::optional<Settings> settings_of(const std::string& dsn);

}  // namespace lockbench::postgres
