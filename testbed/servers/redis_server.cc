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

#include "testbed/servers/open_files.h"

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

/// An answer alone might come from another server that took the port first: the line in the log
/// shows that this one could bind it.
bool redis_is_ready(const Server& server) {
  constexpr std::chrono::milliseconds kWithin{500};
  if (server.log().find("Ready to accept connections") == std::string::npos) return false;
  const auto answer = ask_line(server.port(), "PING\r\n", kWithin);
  return answer && (answer->starts_with("+PONG") || answer->starts_with("-NOAUTH"));
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
  const auto written =
      write_privately(config, configuration(options, *folder, port, clients, spec.unix_socket));
  if (!written) return tl::unexpected(written.error());
  spec.folder = *folder;
  spec.name = kRedisServer.name;
  spec.argv = {program, config.string()};
  if (options.clock != nullptr) options.clock->put_under(spec);
  spec.ports = {port};
  spec.url = {"redis://"};
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

}  // namespace lockbench::testbed
