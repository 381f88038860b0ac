#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench {

/// How a connection is encrypted and which servers it trusts, from the query of a URL:
///   ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.2|1.3
struct TlsSettings {
  std::string ca_file;                     ///< PEM; empty: the system's authorities
  std::string certificate_file, key_file;  ///< the client's, PEM; both or none
  std::string server_name;                 ///< the certificate's name; empty: the host
  bool only_1_3 = false;                   ///< otherwise TLS 1.2 is accepted too

  bool operator==(const TlsSettings&) const = default;
};

/// Reads such a query, with or without its question mark; file names are percent-decoded. The error
/// names the unknown setting or unreadable file, and what is allowed.
tl::expected<TlsSettings, std::string> parse_tls_query(std::string_view query);

struct HostPort {
  std::string host;  ///< an IPv6 address without its brackets
  std::uint16_t port = 0;

  /// "127.0.0.1:6379", "[::1]:6379"
  std::string display() const;
  bool operator==(const HostPort&) const = default;
};

/// [scheme://][user:password@]host[:port][,host[:port]...][/path][?query]
struct Url {
  /// Hosts and path: without credentials, for people, files and metrics.
  std::string display() const;

  std::string scheme;
  std::string user, password;  ///< percent-decoded
  std::vector<HostPort> hosts;
  std::string path;                        ///< from the slash on; not decoded
  std::string query;                       ///< after the question mark; not decoded
  std::shared_ptr<const TlsSettings> tls;  ///< read from the query; null: none
};

/// What one kind of server accepts as its URL.
struct UrlForm {
  enum class Login {
    none,
    password,       ///< [user]:password@
    user_password,  ///< user:password@
    user,           ///< user[:password]@
  };

  std::string_view what;                  ///< for errors: "a Redis URL"
  std::string_view allowed;               ///< for errors: the forms that are accepted
  std::vector<std::string_view> schemes;  ///< "" if the scheme can be left out
  std::uint16_t default_port = 0;
  std::size_t max_hosts = 1;  ///< 0: the URL names a path only
  Login login = Login::none;
  /// Characters that user and password must not contain unencoded, as they may have another
  /// meaning.
  std::string_view must_encode = {};
  bool query = false;  ///< may follow; otherwise a question mark is part of the path
  bool tls = false;    ///< the query may follow, and has TlsSettings
};

/// The error says what is wrong and what is allowed. It never repeats the text, which may hold a
/// secret.
tl::expected<Url, std::string> parse_url(std::string_view text, const UrlForm& form);

/// An error in the same words, for a caller's own checks.
tl::unexpected<std::string> invalid_url(std::string_view why, const UrlForm& form);

/// "host:port", with brackets around an IPv6 address.
std::string display_address(std::string_view host, std::string_view port);

/// Nothing if a % is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Cuts `text` at the first `mark` and returns the rest after it; empty without a mark.
std::string_view cut_at(std::string_view& text, char mark);

}  // namespace lockbench
