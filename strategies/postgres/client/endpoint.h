#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::postgres {

/// One PostgreSQL database, named by a libpq URI or key=value string ("DSN").
struct Endpoint {
  std::string dsn;  ///< with secrets: for libpq only
  /// "127.0.0.1:5432" or "unix:/run/postgresql:5432": without credentials.
  std::string display;
};

/// The error says what is wrong and what is allowed, and never repeats the DSN, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn);

}  // namespace lockbench::postgres
