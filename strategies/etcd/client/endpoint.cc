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
                     .allowed = "etcd://[user:password@]host[:port][,host[:port]...], or http://",
                     .schemes = {"", "etcd", "http"},
                     .default_port = 2379,
                     .max_hosts = 32,
                     .login = UrlForm::Login::user_password,
                     .must_encode = "@,"};
  if (text.starts_with("https://")) return invalid_url("TLS is not supported", form);
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->path.empty() && url->path != "/") return invalid_url("a path is not allowed", form);
  return Endpoint{.members = std::move(url->hosts),
                  .user = std::move(url->user),
                  .password = std::move(url->password)};
}

}  // namespace lockbench::etcd
