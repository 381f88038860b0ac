#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench {

/// How a connection is encrypted and whom it trusts, from the query of a URL:
///   ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.2|1.3
struct TlsSettings {
  std::string ca_file;                     ///< PEM; empty: the system's authorities
  std::string certificate_file, key_file;  ///< the client's, PEM; both or none
  std::string server_name;                 ///< that the certificate must be for; empty: the host
  bool only_1_3 = false;                   ///< otherwise TLS 1.2 is accepted too

  bool operator==(const TlsSettings&) const = default;
};

/// Reads such a query, with or without its question mark; file names are percent-decoded. The error
/// names what is not known, or not readable, and what is allowed.
tl::expected<TlsSettings, std::string> parse_tls_query(std::string_view query);

}  // namespace lockbench
