#include "strategies/zookeeper/client/endpoint.h"

#include <algorithm>
#include <cstdint>

namespace lockbench::zookeeper {
namespace {

bool is_good_chroot(std::string_view chroot) {
  if (chroot.find("//") != std::string_view::npos || chroot.ends_with('/')) return false;
  return std::all_of(chroot.begin(), chroot.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

std::string Endpoint::display() const {
  std::string all;
  for (const HostPort& server : servers) all += (all.empty() ? "" : ",") + server.display();
  return all + chroot;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  constexpr std::uint16_t kPort = 2181, kTlsPort = 2281;
  const bool tls = text.starts_with("zks://");
  const bool with_scheme = tls || text.starts_with("zk://");
  const UrlForm form{.what = "the address of a ZooKeeper server",
                     .allowed =
                         "[zk://[user:password@]]host[:port][,host[:port]...][/chroot], or "
                         "zks:// with ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME",
                     .schemes = {"", "zk", "zks"},
                     .default_port = tls ? kTlsPort : kPort,
                     .max_hosts = 32,
                     .login = with_scheme ? UrlForm::Login::user_password : UrlForm::Login::none,
                     .tls = tls};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (url->user.find(':') != std::string::npos) {
    return invalid_url("the user must not contain a colon", form);
  }
  if (url->path == "/") url->path.clear();
  if (!is_good_chroot(url->path)) return invalid_url("not a valid chroot path", form);
  return Endpoint{.servers = std::move(url->hosts),
                  .chroot = std::move(url->path),
                  .user = std::move(url->user),
                  .password = std::move(url->password),
                  .tls = std::move(url->tls)};
}

}  // namespace lockbench::zookeeper
