#include "strategies/memcached/client/endpoint.h"

#include <algorithm>
#include <utility>

namespace lockbench::memcached {
namespace {

/// A space or the end of a line would end what is sent to authenticate.
bool can_be_sent(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const bool tls = text.starts_with("memcaches://");
  const UrlForm form{.what = "the address of a memcached server",
                     .allowed =
                         "[memcached://][user:password@]HOST[:PORT], or memcaches:// for TLS, with "
                         "?cacert=FILE and other settings",
                     .schemes = {"", "memcached", "memcaches"},
                     .default_port = 11211,
                     .login = UrlForm::Login::user_password,
                     .query = tls};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->path.empty() && url->path != "/") return invalid_url("a path is not allowed", form);
  if (!can_be_sent(url->user) || !can_be_sent(url->password)) {
    return invalid_url("user and password must not contain spaces and control characters", form);
  }
  Endpoint endpoint{.server = std::move(url->hosts.front()),
                    .user = std::move(url->user),
                    .password = std::move(url->password)};
  if (!tls) return endpoint;
  auto settings = parse_tls_query(url->query);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  endpoint.tls = std::make_shared<const TlsSettings>(*std::move(settings));
  return endpoint;
}

}  // namespace lockbench::memcached
