#include "testbed/servers/redis_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "testbed/servers/clients.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

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

std::string configuration(const RedisOptions& options, const fs::path& folder, std::uint16_t port,
                          std::uint64_t clients, const fs::path& unix_socket) {
  std::string text = fmt::format(
      "bind 127.0.0.1\nport {}\ndaemonize no\nlogfile \"\"\ndir {}\nsave \"\"\n"
      "appendonly {}\nappendfsync everysec\nmaxclients {}\ntcp-backlog {}\n",
      port, config_string((folder / "data").string()), options.durable ? "yes" : "no", clients,
      longest_backlog());
  if (!unix_socket.empty()) {
    text += fmt::format("unixsocket {}\nunixsocketperm 700\n", config_string(unix_socket.string()));
  }
  if (options.debug_command) text += "enable-debug-command yes\n";
  if (!options.password.empty())
    text += fmt::format("requirepass {}\n", config_string(options.password));
  for (const std::string& user : options.users) text += fmt::format("user {}\n", user);
  for (const std::string& line : options.config) text += line + "\n";
  return text;
}

tl::expected<void, std::string> write_privately(const fs::path& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return tl::unexpected(fmt::format("cannot make {}: {}", path.string(), std::strerror(errno)));
  }
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!whole) return tl::unexpected(fmt::format("cannot write {}", path.string()));
  return {};
}

/// An answer alone might be that of another server, which was quicker to take the port: only the
/// one that could listen writes the line to our log.
bool ready(const Server& server) {
  constexpr std::chrono::milliseconds kWithin{500};
  if (server.log().find("Ready to accept connections") == std::string::npos) return false;
  const auto answer = ask_line(server.port(), "PING\r\n", kWithin);
  return answer && (answer->starts_with("+PONG") || answer->starts_with("-NOAUTH"));
}

}  // namespace

class RedisStarter {
 public:
  using Result = tl::expected<std::unique_ptr<RedisServer>, std::string>;

  RedisStarter(Testbed& testbed, const RedisOptions& options, std::string program,
               std::uint64_t clients)
      : testbed_(testbed), options_(options), program_(std::move(program)), clients_(clients) {}

  Result start_on(std::uint16_t port) const {
    const auto folder = testbed_.make_server_folder("redis");
    if (!folder) return tl::unexpected(folder.error());
    const fs::path unix_socket = options_.unix_socket ? *folder / "socket" : fs::path();
    if (unix_socket.native().size() >= sizeof(sockaddr_un::sun_path)) {
      return tl::unexpected(fmt::format("{} is too long for a unix socket: set a shorter TMPDIR",
                                        unix_socket.string()));
    }
    const fs::path config = *folder / "redis.conf";
    const auto written =
        write_privately(config, configuration(options_, *folder, port, clients_, unix_socket));
    if (!written) return tl::unexpected(written.error());

    ServerSpec spec;
    spec.folder = *folder;
    spec.name = kRedisServer.name;
    spec.argv = {program_, config.string()};
    if (options_.clock != nullptr) options_.clock->put_under(spec);
    spec.ports = {port};
    spec.ready = ready;
    std::unique_ptr<RedisServer> server(new RedisServer(testbed_, std::move(spec), unix_socket));
    if (const auto launched = server->launch(); !launched) return tl::unexpected(launched.error());
    return server;
  }

 private:
  Testbed& testbed_;
  const RedisOptions& options_;
  const std::string program_;
  const std::uint64_t clients_;
};

RedisServer::RedisServer(const Testbed& testbed, ServerSpec spec, fs::path unix_socket)
    : Server(testbed, std::move(spec)), unix_socket_(std::move(unix_socket)) {}

std::string RedisServer::url() const { return fmt::format("redis://127.0.0.1:{}", port()); }

tl::expected<std::unique_ptr<RedisServer>, std::string> start_redis(Testbed& testbed,
                                                                    const RedisOptions& options) {
  const auto program = find_program(kRedisServer);
  if (!program) return tl::unexpected(program.error());
  const auto clients = clients_allowed(kRedisServer.name, options.max_clients);
  if (!clients) return tl::unexpected(clients.error());
  const RedisStarter starter(testbed, options, program->string(), *clients);
  return start_on_free_port<RedisServer>(
      options.choose_port, [&](std::uint16_t port) { return starter.start_on(port); });
}

}  // namespace lockbench::testbed
