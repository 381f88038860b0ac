#include "strategies/memcached/client/endpoint.h"

namespace lockbench::memcached {

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form{.what = "the address of a memcached server",
                     .allowed = "HOST or HOST:PORT",
                     .schemes = {""},
                     .default_port = 11211};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->path.empty()) return invalid_url("a path is not allowed", form);
  return std::move(url->hosts.front());
}

}  // namespace lockbench::memcached
