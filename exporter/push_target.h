#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::exporter {

/// The address of a Pushgateway.
struct PushTarget {
  std::string scheme = "http";  ///< or "https"
  std::string host;             ///< an IPv6 address in brackets
  std::string port;
  std::string path;  ///< before /metrics; empty, or begins with a slash and does not end with one
  std::string user, password;

  /// Without user and password.
  std::string display() const;
};

/// "http[s]://[user[:password]@]host[:port][/path]", in which user and password may be
/// percent-encoded. The error does not repeat the text, as that may hold a secret.
tl::expected<PushTarget, std::string> parse_push_target(std::string_view url);

}  // namespace lockbench::exporter
