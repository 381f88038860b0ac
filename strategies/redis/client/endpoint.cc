#include "strategies/redis/client/endpoint.h"

#include <algorithm>

#include "strategies/number.h"

namespace lockbench::redis {
namespace {

UrlForm form_of(std::string_view url) {
  const bool unix_socket = url.starts_with("unix://");
  const bool tls = url.starts_with("rediss");
  const bool sentinels = url.starts_with(tls ? "rediss+sentinel://" : "redis+sentinel://");
  return {.what = "a Redis URL",
          .allowed =
              "redis://[[user]:password@]host[:port][/db], "
              "unix://[[user]:password@]/path[?db=N] or "
              "redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/name[/db]; "
              "rediss:// and rediss+sentinel:// for TLS, with ?cacert=FILE and other settings",
          .schemes = {"redis", "unix", "redis+sentinel", "rediss", "rediss+sentinel"},
          .default_port = static_cast<std::uint16_t>(sentinels ? 26379 : 6379),
          .max_hosts = unix_socket ? 0U
                       : sentinels ? 32U
                                   : 1U,
          .login = UrlForm::Login::password,
          .query = unix_socket,
          .tls = tls};
}

}  // namespace

std::string Endpoint::display() const {
  if (!path.empty()) return "unix:" + path;
  if (sentinels.empty()) return display_address(host, std::to_string(port));
  std::string all;
  for (const HostPort& sentinel : sentinels) all += (all.empty() ? "" : ",") + sentinel.display();
  return all + "/" + master;
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form = form_of(text);
  auto url = parse_url(text, form);
  if (!url) return tl::unexpected(std::move(url.error()));
  Endpoint endpoint{.user = std::move(url->user),
                    .password = std::move(url->password),
                    .tls = std::move(url->tls)};
  std::string_view path = url->path;
  std::string_view database;
  if (url->scheme == "unix") {
    database = url->query;
    endpoint.path = path;
    if (!path.starts_with('/')) return invalid_url("a unix socket needs an absolute path", form);
    // The size of sockaddr_un's path, less its final zero.
    if (path.size() > 107) {
      return invalid_url("a unix socket's path has at most 107 characters", form);
    }
    if (database.empty()) return endpoint;
    if (!database.starts_with("db=")) return invalid_url("the only parameter is db=N", form);
    database.remove_prefix(3);
  } else {
    path.remove_prefix(std::min<std::size_t>(path.size(), 1));
    if (url->scheme.ends_with("+sentinel")) {
      database = cut_at(path, '/');
      if (path.empty()) return invalid_url("the master's name is missing", form);
      if (path.find('@') != std::string_view::npos) {
        return invalid_url("an @ in the master's name; a / in a password is written %2F", form);
      }
      endpoint.master = path;
      endpoint.sentinels = std::move(url->hosts);
    } else {
      database = path;
      endpoint.host = url->hosts.front().host;
      endpoint.port = url->hosts.front().port;
    }
    if (database.empty()) return endpoint;
  }
  constexpr int kMostDatabases = 1'000'000;
  const auto number = parse_number<int>(database);
  if (!number || *number < 0 || *number > kMostDatabases) {
    return invalid_url("the database must be a number", form);
  }
  endpoint.database = *number;
  return endpoint;
}

}  // namespace lockbench::redis
