#include "testbed/servers/pgbouncer_server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// Written to this server's log only if it could bind its port.
bool pgbouncer_is_ready(const Server& server) {
  return server.log().find("process up: PgBouncer") != std::string::npos;
}

std::string configuration(const PgbouncerOptions& options, std::uint16_t postgres,
                          std::uint16_t port) {
  return fmt::format(
      "[databases]\n"
      "* = host=127.0.0.1 port={} user=postgres\n"
      "[pgbouncer]\n"
      "listen_addr = 127.0.0.1\n"
      "listen_port = {}\n"
      "unix_socket_dir =\n"
      "auth_type = any\n"
      "pool_mode = {}\n"
      "default_pool_size = {}\n"
      "max_client_conn = 1000\n"
      "ignore_startup_parameters = extra_float_digits\n",
      postgres, port, options.pool_mode, options.pool_size);
}

Started start_on(Testbed& testbed, const PgbouncerOptions& options, const std::string& program,
                 std::uint16_t postgres, std::uint16_t port) {
  ServerSpec spec;
  spec.user = unless_root("nobody");
  auto folder = testbed.make_server_folder(kPgbouncer.name, spec.user);
  if (!folder) return tl::unexpected(folder.error());
  spec.folder = *std::move(folder);
  const fs::path config = spec.folder / "pgbouncer.ini";
  std::ofstream(config) << configuration(options, postgres, port);
  std::error_code error;
  fs::permissions(config, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                  error);
  if (error) return tl::unexpected(fmt::format("{}: {}", config.string(), error.message()));
  spec.argv = {program, config.string()};
  spec.ports = {port};
  spec.url = {"postgresql://postgres@", "/postgres"};
  spec.ready = pgbouncer_is_ready;
  return Server::start(testbed, std::move(spec));
}

}  // namespace

tl::expected<fs::path, std::string> find_pgbouncer() {
  // Where Debian keeps it; not in the PATH of every user.
  const char* const path = std::getenv("PATH");
  return find_program(kPgbouncer, fmt::format("{}:/usr/sbin", path == nullptr ? "" : path));
}

Started start_pgbouncer(Testbed& testbed, std::uint16_t postgres, const PgbouncerOptions& options) {
  const auto program = find_pgbouncer();
  if (!program) return tl::unexpected(program.error());
  return start_on_free_port<Server>(options.choose_port, [&](std::uint16_t port) {
    return start_on(testbed, options, program->string(), postgres, port);
  });
}

}  // namespace lockbench::testbed
