#include "exporter/push_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/url.h"

namespace lockbench::exporter {
namespace {

bool is_plain(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || others.find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string PushTarget::display() const {
  return fmt::format("{}://{}:{}{}", scheme, host, port, path);
}

tl::expected<PushTarget, std::string> parse_push_target(std::string_view text) {
  const UrlForm form{
      .what = "a Pushgateway URL",
      .allowed = "http://[user[:password]@]host[:port][/path], or https://",
      .schemes = {"http", "https"},
      .default_port = static_cast<std::uint16_t>(text.starts_with("https://") ? 443 : 80),
      .login = UrlForm::Login::user};
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  const HostPort& server = url->hosts.front();
  const bool ipv6 = server.host.find(':') != std::string::npos;
  while (url->path.ends_with('/')) url->path.pop_back();
  if (!is_plain(server.host, ipv6 ? ":." : "-._")) return invalid_url("not a host name", form);
  if (!is_plain(url->path, "/-._~")) {
    return invalid_url("unexpected characters in the path", form);
  }
  return PushTarget{.scheme = std::move(url->scheme),
                    .host = ipv6 ? "[" + server.host + "]" : server.host,
                    .port = std::to_string(server.port),
                    .path = std::move(url->path),
                    .user = std::move(url->user),
                    .password = std::move(url->password)};
}

}  // namespace lockbench::exporter
