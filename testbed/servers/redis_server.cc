#include "testbed/servers/redis_server.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// Quoted as redis.conf wants it.
std::string config_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// What the kernel accepts: with more, redis-server warns.
int longest_backlog() {
  int backlog = 511;
  std::ifstream("/proc/sys/net/core/somaxconn") >> backlog;
  return backlog;
}

std::string configuration(const Testbed& testbed, const RedisOptions& options,
                          const fs::path& folder, std::uint16_t port, std::uint64_t clients,
                          const fs::path& unix_socket) {
  std::string text = fmt::format(
      "bind 127.0.0.1\ndaemonize no\nlogfile \"\"\ndir {}\nsave \"\"\n"
      "appendonly {}\nappendfsync everysec\nmaxclients {}\ntcp-backlog {}\n",
      config_string((folder / "data").string()), options.durable ? "yes" : "no", clients,
      longest_backlog());
  if (!unix_socket.empty()) {
    text += fmt::format("unixsocket {}\nunixsocketperm 700\n", config_string(unix_socket.string()));
  }
  text += redis_port_config(port, options.tls) + redis_login_config(testbed);
  text += fmt::format("masteruser {}\nmasterauth {}\n", kUser, testbed.secret());
  const bool own_default = std::any_of(options.users.begin(), options.users.end(),
                                       [](auto& user) { return user.starts_with("default "); });
  // Nobody is that user, but an append-only file is loaded as it, and its transactions need the
  // rights.
  if (!own_default) text += "user default off allkeys allchannels allcommands\n";
  for (const std::string& user : options.users) text += fmt::format("user {}\n", user);
  for (const std::string& line : options.config) text += line + "\n";
  return text;
}

/// An answer alone might come from another server that took the port first: the line in the log
/// shows that this one could bind it.
bool redis_is_ready(const Server& server) {
  if (server.log().find("Ready to accept connections") == std::string::npos) return false;
  return ask_redis_line(server, "PING") == "+PONG";
}

Started start_on(Testbed& testbed, const RedisOptions& options, const std::string& program,
                 std::uint64_t clients, std::uint16_t port) {
  const auto folder = testbed.make_server_folder("redis");
  if (!folder) return tl::unexpected(folder.error());
  ServerSpec spec;
  if (options.unix_socket) spec.unix_socket = *folder / "socket";
  if (spec.unix_socket.native().size() >= sizeof(sockaddr_un::sun_path)) {
    return tl::unexpected(fmt::format("{} is too long for a unix socket: set a shorter TMPDIR",
                                      spec.unix_socket.string()));
  }
  const fs::path config = *folder / "redis.conf";
  const auto written = testbed.write_file(
      config, configuration(testbed, options, *folder, port, clients, spec.unix_socket));
  if (!written) return tl::unexpected(written.error());
  spec.folder = *folder;
  spec.name = kRedisServer.name;
  spec.argv = {program, config.string()};
  if (options.clock != nullptr) options.clock->put_under(spec);
  spec.ports = {port};
  spec.url = {"redis://" + testbed.login()};
  if (options.tls != nullptr) {
    spec.tls = options.tls;
    spec.url = {"rediss://" + testbed.login(), options.tls->query()};
  }
  spec.ready = redis_is_ready;
  return Server::start(testbed, std::move(spec));
}

}  // namespace

Started start_redis(Testbed& testbed, const RedisOptions& options) {
  const auto program = find_program(kRedisServer);
  if (!program) return tl::unexpected(program.error());
  const auto clients = clients_allowed(kRedisServer.name, options.max_clients);
  if (!clients) return tl::unexpected(clients.error());
  return start_on_free_port<Server>(options.choose_port, [&](std::uint16_t port) {
    return start_on(testbed, options, program->string(), *clients, port);
  });
}

std::string redis_login_config(const Testbed& testbed) {
  return fmt::format("user {} on >{} ~* &* +@all\n", kUser, testbed.secret());
}

std::string redis_port_config(std::uint16_t port, const TlsFiles* tls) {
  if (tls == nullptr) return fmt::format("port {}\n", port);
  return fmt::format(
      "port 0\ntls-port {}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n"
      "tls-auth-clients {}\ntls-replication yes\n",
      port, config_string(tls->certificate.string()), config_string(tls->key.string()),
      config_string(tls->ca.string()), tls->asks_clients ? "yes" : "no");
}

tl::expected<std::string, std::string> ask_redis(const Server& server, std::string_view commands,
                                                 const std::function<bool(std::string_view)>& whole,
                                                 std::chrono::milliseconds within) {
  constexpr std::string_view kLoggedIn = "+OK\r\n";
  const std::string request = fmt::format("AUTH {} {}\r\n{}", kUser, server.secret(), commands);
  const auto all = [&](std::string_view text) {
    if (text.starts_with(kLoggedIn)) return whole(text.substr(kLoggedIn.size()));
    return text.starts_with('-') && text.ends_with("\r\n");
  };
  auto answer = ask_until(server.port(), request, within, all, server.tls());
  if (answer && answer->starts_with(kLoggedIn)) answer->erase(0, kLoggedIn.size());
  return answer;
}

tl::expected<std::string, std::string> ask_redis_line(const Server& server,
                                                      std::string_view command) {
  auto answer = ask_redis(server, fmt::format("{}\r\n", command), [](std::string_view text) {
    return text.find("\r\n") != std::string_view::npos;
  });
  if (answer) answer->resize(std::min(answer->size(), answer->find("\r\n")));
  return answer;
}

}  // namespace lockbench::testbed
