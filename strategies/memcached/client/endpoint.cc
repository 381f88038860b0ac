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
  const UrlForm form{.what = "the address of a memcached server",
                     .allowed =
                         "[memcached://][user:password@]HOST[:PORT], or memcaches:// for TLS, with "
                         "?cacert=FILE and other settings",
                     .schemes = {"", "memcached", "memcaches"},
                     .default_port = 11211,
                     .login = UrlForm::Login::user_password,
                     .tls = text.starts_with("memcaches://")};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->path.empty() && url->path != "/") return invalid_url("a path is not allowed", form);
  if (!can_be_sent(url->user) || !can_be_sent(url->password)) {
    return invalid_url("user and password must not contain spaces and control characters", form);
  }
  return Endpoint{.server = std::move(url->hosts.front()),
                  .user = std::move(url->user),
                  .password = std::move(url->password),
                  .tls = std::move(url->tls)};
}

}  // namespace lockbench::memcached
