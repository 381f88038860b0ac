#include "testbed/servers/pgbouncer_server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "testbed/servers/postgres_server.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// Written to this server's log only if it could bind its port.
bool pgbouncer_is_ready(const Server& server) {
  return server.log().find("process up: PgBouncer") != std::string::npos;
}

std::string configuration(const PgbouncerOptions& options, const fs::path& users,
                          std::uint16_t postgres, std::uint16_t port) {
  return fmt::format(
      "[databases]\n"
      "* = host=127.0.0.1 port={} user={}\n"
      "[pgbouncer]\n"
      "listen_addr = 127.0.0.1\n"
      "listen_port = {}\n"
      "unix_socket_dir =\n"
      "auth_type = scram-sha-256\n"
      "auth_file = {}\n"
      "pool_mode = {}\n"
      "default_pool_size = {}\n"
      "max_client_conn = 1000\n"
      "ignore_startup_parameters = extra_float_digits\n",
      postgres, kSuperuser, port, users.string(), options.pool_mode, options.pool_size);
}

Started start_on(Testbed& testbed, const PgbouncerOptions& options, const std::string& program,
                 std::uint16_t postgres, std::uint16_t port) {
  ServerSpec spec;
  auto folder = testbed.make_server_folder(kPgbouncer.name);
  if (!folder) return tl::unexpected(folder.error());
  spec.folder = *std::move(folder);
  const fs::path config = spec.folder / "pgbouncer.ini";
  const fs::path users = spec.folder / "users";
  // For its clients, and for itself where it is a client.
  auto written =
      testbed.write_file(users, fmt::format("\"{}\" \"{}\"\n", kSuperuser, testbed.secret()));
  if (written) {
    written = testbed.write_file(config, configuration(options, users, postgres, port));
  }
  if (!written) return tl::unexpected(written.error());
  spec.argv = {program, config.string()};
  spec.ports = {port};
  spec.url = {"postgresql://" + testbed.login(kSuperuser), std::string(kPlainDatabase)};
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
