#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

/// The server logs this only after binding its port, and with its streams recovered.
bool nats_is_ready(const Server& server) {
  return server.log().find("Server is ready") != std::string::npos;
}

/// Its own limits for a login and a TLS handshake are two seconds, too little on a busy machine.
constexpr int kPatienceSeconds = 60;

std::string tls_block(const TlsFiles& files) {
  return fmt::format(
      "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: {}, timeout: {} }}\n",
      files.certificate.string(), files.key.string(), files.ca.string(), files.asks_clients,
      kPatienceSeconds);
}

}  // namespace

StartedServer start_nats(Testbed& testbed, const NatsOptions& options) {
  return start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
    const auto program = need(find_program(kNats));
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kNats.name, {port});
    const auto config = spec.folder / "nats.conf";
    const std::string tls = options.tls == nullptr ? std::string() : tls_block(*options.tls);
    need(testbed.write_file(
        config,
        fmt::format("listen: \"127.0.0.1:{}\"\n"
                    "max_connections: {}\n"
                    "jetstream {{ store_dir: \"{}\" }}\n"
                    "authorization {{ timeout: {}, users: [\n"
                    "  {{ user: \"{}\", password: \"{}\" }}\n{}\n] }}\n{}",
                    port, options.max_clients, (spec.folder / "data").string(), kPatienceSeconds,
                    kUser, testbed.secret(), fmt::join(options.users, "\n"), tls)));
    spec.argv = {program.string(), "--config=" + config.string()};
    spec.speak("nats", "tls", testbed.login(), options.tls);
    spec.ready = nats_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  });
}

}  // namespace lockbench::testbed
