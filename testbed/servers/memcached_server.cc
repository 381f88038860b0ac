#include "testbed/servers/memcached_server.h"

#include <fmt/format.h>

#include <utility>

#include "testbed/servers/open_files.h"

namespace lockbench::testbed {
namespace {

using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// Checks that this process answers: another may have taken the port first.
bool memcached_is_ready(const Server& server) {
  constexpr std::chrono::milliseconds kWithin{500};
  const auto answer = ask_line(server.port(), "stats\r\n", kWithin);
  return answer && *answer == fmt::format("STAT pid {}", server.pid());
}

Started start_on(Testbed& testbed, const MemcachedOptions& options, const std::string& program,
                 std::uint64_t clients, std::uint16_t port) {
  ServerSpec spec;
  spec.user = unless_root("nobody");
  auto folder = testbed.make_server_folder("memcached", spec.user);
  if (!folder) return tl::unexpected(folder.error());
  spec.folder = *std::move(folder);
  spec.argv = {program,
               "--listen=127.0.0.1",
               fmt::format("--port={}", port),
               "--udp-port=0",
               fmt::format("--conn-limit={}", clients),
               fmt::format("--memory-limit={}", options.memory_megabytes)};
  spec.name = kMemcached.name;
  if (options.clock != nullptr) options.clock->put_under(spec);
  spec.ports = {port};
  spec.ready = memcached_is_ready;
  return Server::start(testbed, std::move(spec));
}

}  // namespace

Started start_memcached(Testbed& testbed, const MemcachedOptions& options) {
  const auto program = find_program(kMemcached);
  if (!program) return tl::unexpected(program.error());
  const auto clients = clients_allowed(kMemcached.name, options.max_clients);
  if (!clients) return tl::unexpected(clients.error());
  return start_on_free_port<Server>(options.choose_port, [&](std::uint16_t port) {
    return start_on(testbed, options, program->string(), *clients, port);
  });
}

}  // namespace lockbench::testbed
