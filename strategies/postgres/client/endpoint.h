#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/store.h"

namespace lockbench::postgres {

/// One PostgreSQL database, named by a libpq URI or key=value string ("DSN").
struct Endpoint {
  std::string dsn;  ///< with secrets: for libpq only
  /// "127.0.0.1:5432" or "unix:/run/postgresql:5432": without credentials.
  std::string display;
  /// The host's name, to look up before libpq would, which blocks; empty if there is none. A list
  /// of hosts is left to libpq.
  std::string name;
};

/// Errors are those of parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn);

/// What the sslmode promises of a DSN that parse_endpoint accepts.
Secrecy secrecy_of(const std::string& dsn);

/// StoreKind::take_environment of PGHOST, PGSSLMODE, PGSERVICE and so on.
std::vector<std::string> take_environment();
/// StoreKind::complete, as libpq would do it. A DSN that names a service is completed by that
/// alone.
std::string completed(const std::string& dsn);

/// Text between these quotes, in which quotes and backslashes are escaped.
std::string in_quotes(std::string_view text, char quote);

/// The number of a key, for advisory locks: its FNV-1a hash, the same on every machine. Two keys
/// with one number would share a lock, which is unlikely below billions of keys.
std::int64_t advisory_number(std::string_view key);

}  // namespace lockbench::postgres
