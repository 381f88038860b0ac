#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "testbed/process/shims.h"
#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// Quoted for redis.conf.
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

/// The kernel's maximum: above it, redis-server warns.
int longest_backlog() {
  int backlog = 511;
  std::ifstream("/proc/sys/net/core/somaxconn") >> backlog;
  return backlog;
}

/// Silence after which a server counts as down. Short, but longer than a busy machine's pauses.
constexpr int kDownAfterMilliseconds = 2000;

/// A replica takes over however old its data is: a play decides what it has.
std::string cluster_config(const RedisOptions& options, std::uint16_t port) {
  return fmt::format(
      "cluster-enabled yes\ncluster-port {}\ncluster-announce-ip 127.0.0.1\n"
      "cluster-node-timeout {}\ncluster-replica-validity-factor 0\n"
      "repl-diskless-sync-delay 0\n{}",
      port, kDownAfterMilliseconds, options.tls == nullptr ? "" : "tls-cluster yes\n");
}

/// `ports`: for clients, and for the other servers of a cluster.
std::string configuration(const Testbed& testbed, const RedisOptions& options,
                          const fs::path& folder, const std::vector<std::uint16_t>& ports) {
  std::string text = fmt::format(
      "bind 127.0.0.1\ndaemonize no\nlogfile \"\"\ndir {}\nsave \"\"\n"
      "appendonly {}\nappendfsync everysec\nmaxclients {}\ntcp-backlog {}\n",
      config_string((folder / "data").string()), options.durable ? "yes" : "no",
      options.max_clients, longest_backlog());
  text += redis_access_config(testbed, ports.front(), options.tls);
  if (options.cluster) text += cluster_config(options, ports.back());
  text += fmt::format("masteruser {}\nmasterauth {}\n", kUser, testbed.secret());
  const bool own_default = std::ranges::any_of(
      options.config, [](auto& line) { return line.starts_with("user default "); });
  // No client can log in as `default`, but Redis replays an append-only file as that user, so it
  // needs all permissions.
  if (!own_default) text += "user default off allkeys allchannels allcommands\n";
  for (const std::string& line : options.config) text += line + "\n";
  return text;
}

/// An answer alone might come from another server that took the port first; the line in the log
/// shows that this one bound it.
bool redis_is_ready(const Server& server) {
  if (server.log().find("Ready to accept connections") == std::string::npos) return false;
  return ask_redis_line(server, "PING") == "+PONG";
}

}  // namespace

StartedServer start_redis(Testbed& testbed, const RedisOptions& options) {
  using Ports = std::vector<std::uint16_t>;
  const auto choose = [&] {
    return std::vector<Ports>{need(distinct_ports(testbed.choose_port, options.cluster ? 2 : 1))};
  };
  const auto start = [&](std::size_t /*number*/, const std::vector<Ports>& all) {
    const fs::path program = need(find_program(kRedisServer));
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kRedisServer.name, all.front());
    const fs::path config = spec.folder / "redis.conf";
    need(testbed.write_file(config, configuration(testbed, options, spec.folder, all.front())));
    spec.argv = {program.string(), config.string()};
    if (options.notes_syncs) put_under_sync_shim(testbed, spec);
    spec.speak("redis", "rediss", testbed.login(), options.tls);
    spec.clock = options.clock;
    spec.ready = redis_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  };
  return start_all_on_free_ports<Server, Ports>(choose, start).map([](auto servers) {
    return std::move(servers.front());
  });
}

std::string redis_access_config(const Testbed& testbed, std::uint16_t port, const TlsFiles* tls) {
  const std::string user = fmt::format("user {} on >{} ~* &* +@all\n", kUser, testbed.secret());
  if (tls == nullptr) return fmt::format("{}port {}\n", user, port);
  return fmt::format(
      "{}port 0\ntls-port {}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n"
      "tls-auth-clients {}\ntls-replication yes\n",
      user, port, config_string(tls->certificate.string()), config_string(tls->key.string()),
      config_string(tls->ca.string()), tls->asks_clients ? "yes" : "no");
}

namespace {

tl::expected<std::string, std::string> ask_as_user(
    const Server& server, std::string_view commands,
    const std::function<bool(std::string_view)>& whole) {
  constexpr std::chrono::seconds kWithin{1};
  const std::string login = fmt::format("AUTH {} {}\r\n", kUser, server.secret());
  return ask_until(server.port(), commands, kWithin, whole, server.tls(), {login, "+OK\r\n"});
}

}  // namespace

tl::expected<std::string, std::string> ask_redis(const Server& server, std::string_view commands) {
  // The last answer shows that those before it are complete.
  static constexpr std::string_view kLast = "+PONG\r\n";
  auto answers = ask_as_user(server, fmt::format("{}\r\nPING\r\n", commands),
                             [](std::string_view text) { return text.ends_with(kLast); });
  if (answers) answers->resize(answers->size() - std::min(answers->size(), kLast.size()));
  return answers;
}

std::string ask_redis_text(const Server& server, std::string_view command) {
  const auto answer = ask_redis(server, command);
  if (!answer || !answer->starts_with('$')) return {};
  const std::size_t begin = answer->find("\r\n") + 2;
  return answer->substr(begin, answer->rfind("\r\n") - begin);
}

tl::expected<std::string, std::string> ask_redis_line(const Server& server,
                                                      std::string_view command) {
  auto answer = ask_as_user(server, fmt::format("{}\r\n", command), [](std::string_view text) {
    return text.find("\r\n") != std::string_view::npos;
  });
  if (answer) answer->resize(std::min(answer->size(), answer->find("\r\n")));
  return answer;
}

void tell_redis(const Server& server, std::string_view command, std::chrono::milliseconds within) {
  std::string answer;
  const bool done = comes_true(within, [&] {
    const auto said = ask_redis_line(server, command);
    answer = said ? *said : said.error();
    return said && said->starts_with('+');
  });
  if (!done) throw Failure(fmt::format("{}: {}: {}", server.address(), command, answer));
}

}  // namespace lockbench::testbed
