#include "strategies/mysql/client/endpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>

#include <array>

namespace lockbench::mysql {
namespace {

constexpr std::string_view kAllowed =
    "mysql://[user[:password]@]host[:port], or mysqls:// for TLS, with "
    "?cacert=FILE&cert=FILE&key=FILE&server-name=NAME&min-tls=1.3 as needed";

UrlForm form(std::string_view scheme) {
  return {.what = "a MariaDB URL",
          .allowed = kAllowed,
          .schemes = {scheme},
          .default_port = 3306,
          .login = UrlForm::Login::user,
          .tls = scheme == "mysqls"};
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm chosen = form(text.starts_with("mysqls://") ? "mysqls" : "mysql");
  auto url = parse_url(text, chosen);
  if (!url) return url;
  if (!url->path.empty() && url->path != "/") {
    return invalid_url("a database cannot be chosen: each run has its own", chosen);
  }
  url->path.clear();
  return url;
}

std::string lock_name(std::string_view key) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace lockbench::mysql
