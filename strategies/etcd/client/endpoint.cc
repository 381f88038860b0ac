#include "strategies/etcd/client/endpoint.h"

#include <arpa/inet.h>

namespace lockbench::etcd {
namespace {

bool is_numeric(const std::string& host, int family) {
  in6_addr parsed{};
  return inet_pton(family, host.c_str(), &parsed) == 1;
}

}  // namespace

std::string grpc_target(const HostPort& member) {
  if (is_numeric(member.host, AF_INET)) return "ipv4:" + member.display();
  if (is_numeric(member.host, AF_INET6)) return "ipv6:" + member.display();
  return "dns:///" + member.display();
}

std::string Endpoint::display() const {
  std::string all;
  for (const HostPort& member : members) all += (all.empty() ? "" : ",") + member.display();
  return all;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form{.what = "the address of an etcd server",
                     .allowed =
                         "etcd://[user:password@]host[:port][,host[:port]...], or http://, "
                         "or https:// with ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME",
                     .schemes = {"", "etcd", "http", "https"},
                     .default_port = 2379,
                     .max_hosts = 32,
                     .login = UrlForm::Login::user_password,
                     .must_encode = "@,",
                     .tls = text.starts_with("https://")};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->path.empty() && url->path != "/") return invalid_url("a path is not allowed", form);
  if (url->tls && url->tls->only_1_3) {
    return invalid_url("min-tls=1.3 cannot be kept: gRPC does not let its users choose", form);
  }
  return Endpoint{.members = std::move(url->hosts),
                  .user = std::move(url->user),
                  .password = std::move(url->password),
                  .tls = std::move(url->tls)};
}

}  // namespace lockbench::etcd
