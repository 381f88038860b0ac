#include <fmt/format.h>

#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// Creates the data if there is none, and executes the server, which sets up its user at each
/// start. So a restart without data equals a first start. The first files are not synced: they
/// reach the disk with the first checkpoint.
constexpr std::string_view kFirstMariadb = R"(
program=$1; data=$2; shift 2
# The caller's settings for its own servers.
export HOME=/nonexistent
for name in $(env | sed -n 's/^\(M[A-Z]*_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
sizes="--innodb-log-file-size=16M --innodb-buffer-pool-size=32M"
if [ ! -e "$data" ]; then
  rm -rf "$data.new" && mkdir "$data.new" || exit 1
  TMPDIR="$data.new" mariadb-install-db --no-defaults --datadir="$data.new" --skip-name-resolve --skip-test-db \
    --auth-root-authentication-method=normal $sizes --innodb-flush-method=nosync \
    --innodb-doublewrite=0 --innodb-flush-log-at-trx-commit=0 >/dev/null || exit 1
  mv "$data.new" "$data" || exit 1
fi
exec "$program" --no-defaults --datadir="$data" --tmpdir="$data" $sizes "$@"
)";

/// One statement a line. Nobody else may log in.
std::string users_for(std::string_view secret, const TlsFiles* tls) {
  const bool certified = tls != nullptr && tls->asks_clients;
  return fmt::format(
      "DELETE FROM mysql.global_priv WHERE User IN ('root', '');\n"
      "FLUSH PRIVILEGES;\n"
      "CREATE USER IF NOT EXISTS '{0}'@'127.0.0.1' IDENTIFIED BY '{1}' REQUIRE {2};\n"
      "GRANT ALL ON *.* TO '{0}'@'127.0.0.1' WITH GRANT OPTION;\n",
      kUser, secret, certified ? "X509" : "NONE");
}

/// Written to this server's log only if it could bind its port.
bool mariadb_is_ready(const Server& server) {
  return server.log().find(": ready for connections") != std::string::npos;
}

}  // namespace

tl::expected<fs::path, std::string> find_mariadb() {
  // Debian's folder, which is not in the PATH of every user.
  return find_program(kMariadb, "/usr/sbin");
}

StartedServer start_mariadb(Testbed& testbed, const MysqlOptions& options) {
  return start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
    const fs::path program = need(find_mariadb());
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kMariadb.name, {port});
    const fs::path users = spec.folder / "users";
    need(testbed.write_file(users, users_for(testbed.secret(), options.tls)));
    spec.argv = {"/bin/sh", "-c", std::string(kFirstMariadb), "mariadbd", program.string(),
                 (spec.folder / "data" / "cluster").string(), "--init-file=" + users.string(),
                 "--bind-address=127.0.0.1", fmt::format("--port={}", port),
                 "--socket=socket",  // in the data's folder, whose path may be too long
                 "--pid-file=pid", "--skip-name-resolve",
                 // A few more, which cancel statements.
                 fmt::format("--max-connections={}", options.max_clients + 20)};
    for (const std::string& option : options.config) spec.argv.push_back("--" + option);
    spec.speak("mysql", "mysqls", testbed.login(), options.tls);
    if (options.tls != nullptr) {
      spec.argv.insert(
          spec.argv.end(),
          {"--require-secure-transport=ON", "--ssl-cert=" + options.tls->certificate.string(),
           "--ssl-key=" + options.tls->key.string(), "--ssl-ca=" + options.tls->ca.string()});
    }
    spec.clock = options.clock;
    spec.ready = mariadb_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  });
}

}  // namespace lockbench::testbed
