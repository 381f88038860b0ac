#include <fmt/format.h>

#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

StartedServer start_pgbouncer(Testbed& testbed, std::uint16_t postgres,
                              const PgbouncerOptions& options) {
  return start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
    // Where Debian keeps it; not in the PATH of every user.
    const fs::path program = need(find_program(kPgbouncer, "/usr/sbin"));
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kPgbouncer.name, {port});
    const fs::path config = spec.folder / "pgbouncer.ini", users = spec.folder / "users";
    // For its clients, and for itself where it is a client.
    need(testbed.write_file(users, fmt::format("\"{}\" \"{}\"\n", kSuperuser, testbed.secret())));
    need(testbed.write_file(config, configuration(options, users, postgres, port)));
    spec.argv = {program.string(), config.string()};
    spec.url = {"postgresql://" + testbed.login(kSuperuser), std::string(kPlainDatabase)};
    spec.ready = pgbouncer_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  });
}

}  // namespace lockbench::testbed
