#include "strategies/zookeeper/client/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>

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

std::string Endpoint::connect_string() const {
  std::string text = display();
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

int Endpoint::addresses() const {
  int count = 0;
  for (const HostPort& server : servers) {
    in_addr ignored{};
    const bool literal = server.host.find(':') != std::string::npos ||
                         inet_pton(AF_INET, server.host.c_str(), &ignored) == 1;
    // A name such as localhost may stand for an IPv4 and an IPv6 address.
    count += literal ? 1 : 2;
  }
  return count;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const bool with_scheme = text.starts_with("zk://");
  const UrlForm form{.what = "the address of a ZooKeeper server",
                     .allowed = "[zk://[user:password@]]host[:port][,host[:port]...][/chroot]",
                     .schemes = {"", "zk"},
                     .default_port = 2181,
                     .max_hosts = 32,
                     .login = with_scheme ? UrlForm::Login::user_password : UrlForm::Login::none};
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
                  .password = std::move(url->password)};
}

}  // namespace lockbench::zookeeper
