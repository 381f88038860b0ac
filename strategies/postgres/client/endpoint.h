#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::postgres {

/// One PostgreSQL database, as libpq's URI or key=value form names it.
struct Endpoint {
  std::string dsn;  ///< secrets included: for libpq alone
  /// "127.0.0.1:5432" or "unix:/run/postgresql:5432": what people, files and metrics may see.
  std::string display;
};

/// The error names what is wrong and what is allowed, and never repeats the DSN, which may hold a
/// secret.
tl::expected<Endpoint, std::string> parse_endpoint(const std::string& dsn);

}  // namespace lockbench::postgres
