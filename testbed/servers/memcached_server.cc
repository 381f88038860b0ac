#include <fmt/format.h>

#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

/// Checks that this process answers, as another may have taken the port first.
bool memcached_is_ready(const Server& server) {
  constexpr std::chrono::milliseconds kWithin{500};
  const auto answer = ask_memcached(server, "stats\r\n", kWithin, [](std::string_view text) {
    return text.find("\r\n") != std::string_view::npos;
  });
  return answer && answer->starts_with(fmt::format("STAT pid {}\r\n", server.pid()));
}

void enable_tls(const TlsFiles& files, ServerSpec& spec) {
  constexpr std::string_view kRequired = "2";  // of a client: its certificate
  std::string options =
      fmt::format("ssl_chain_cert={},ssl_key={}", files.certificate.string(), files.key.string());
  if (files.asks_clients) {
    options += fmt::format(",ssl_verify_mode={},ssl_ca_cert={}", kRequired, files.ca.string());
  }
  spec.argv.insert(spec.argv.end(), {"--enable-ssl", "--extended=" + options});
}

}  // namespace

StartedServer start_memcached(Testbed& testbed, const MemcachedOptions& options) {
  return start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
    const auto program = need(find_program(kMemcached));
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kMemcached.name, {port});
    const auto users = spec.folder / "users";
    need(testbed.write_file(users, fmt::format("{}:{}\n", kUser, testbed.secret())));
    spec.argv = {program.string(),
                 "--auth-file=" + users.string(),
                 "--listen=127.0.0.1",
                 fmt::format("--port={}", port),
                 "--udp-port=0",
                 fmt::format("--conn-limit={}", options.max_clients),
                 fmt::format("--memory-limit={}", options.memory_megabytes)};
    spec.speak("memcached", "memcaches", testbed.login(), options.tls);
    if (options.tls != nullptr) enable_tls(*options.tls, spec);
    spec.clock = options.clock;
    spec.ready = memcached_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  });
}

tl::expected<std::string, std::string> ask_memcached(
    const Server& server, std::string_view commands, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole) {
  const std::string who = fmt::format("{} {}", kUser, server.secret());
  const std::string login = fmt::format("set login 0 0 {}\r\n{}\r\n", who.size(), who);
  return ask_until(server.port(), commands, within, whole, server.tls(), {login, "STORED\r\n"});
}

}  // namespace lockbench::testbed
