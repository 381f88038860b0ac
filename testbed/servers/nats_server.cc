#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
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

/// The headers and text of the first "[H]MSG subject sid [reply] [size] size" in these bytes; empty
/// until it is complete.
std::string_view first_message(std::string_view bytes) {
  constexpr std::string_view kBegin = "MSG _INBOX.ask 1 ", kLineEnd = "\r\n";
  const std::size_t at = bytes.find(kBegin);
  if (at == std::string_view::npos) return {};
  bytes.remove_prefix(at);
  const std::size_t end = bytes.find(kLineEnd);
  if (end == std::string_view::npos) return {};
  const std::size_t number = bytes.substr(0, end).rfind(' ') + 1;
  std::size_t size = 0;
  std::from_chars(bytes.data() + number, bytes.data() + end, size);
  const std::string_view text = bytes.substr(end + kLineEnd.size());
  return text.size() < size + kLineEnd.size() ? std::string_view() : text.substr(0, size);
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

tl::expected<std::string, std::string> ask_nats(const Server& server, std::string_view subject,
                                                std::string_view payload,
                                                std::chrono::milliseconds within) {
  const std::string request = fmt::format(
      "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":\"{}\",\"pass\":\"{}\"}}\r\n"
      "SUB _INBOX.ask 1\r\nPUB {} _INBOX.ask {}\r\n{}\r\n",
      kUser, server.secret(), subject, payload.size(), payload);
  return ask_until(server.port(), request, within,
                   [](std::string_view bytes) {
                     return !first_message(bytes).empty() || bytes.find("-ERR") != bytes.npos;
                   })
      .map([](const std::string& bytes) {
        const std::string_view message = first_message(bytes);
        return message.empty() ? bytes : std::string(message);
      });
}

}  // namespace lockbench::testbed
