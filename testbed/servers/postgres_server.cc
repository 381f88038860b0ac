#include "testbed/servers/postgres_server.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// Creates the cluster, if there is none, and executes the server. So a restart without data is the
/// same as a first start, and a kill while the server starts ends initdb too. initdb does not sync:
/// its files reach the disk with the first checkpoint.
constexpr std::string_view kFirstStart = R"(
cluster=$1; bin=$2; primary=$3; shift 3
if [ ! -e "$cluster/PG_VERSION" ] && [ "$primary" = 0 ]; then
  "$bin/initdb" --pgdata="$cluster" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C --no-sync --no-instructions >/dev/null || exit 1
elif [ ! -e "$cluster/PG_VERSION" ]; then
  "$bin/pg_basebackup" --pgdata="$cluster" --host=127.0.0.1 --port="$primary" --username=postgres \
    --write-recovery-conf --checkpoint=fast --no-sync || exit 1
fi
exec "$bin/postgres" -D "$cluster" "$@"
)";

/// Written to this server's log only if it could bind its port.
bool postgres_is_ready(const Server& server) {
  const std::string log = server.log();
  for (const auto* ready : {"database system is ready to accept connections",
                            "database system is ready to accept read-only connections"}) {
    if (log.find(ready) != std::string::npos) return true;
  }
  return false;
}

/// /usr/lib/postgresql/VERSION/bin, newest first, as a PATH.
std::string debian_folders() {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    int version = 0;
    const std::string name = entry.path().filename();
    std::from_chars(name.data(), name.data() + name.size(), version);
    found.emplace_back(version, (entry.path() / "bin").string());
  }
  std::sort(found.rbegin(), found.rend());
  std::string path;
  for (const auto& [version, folder] : found) path += (path.empty() ? "" : ":") + folder;
  return path;
}

std::vector<std::string> arguments(const PostgresOptions& options, const fs::path& bin,
                                   const fs::path& cluster, const fs::path& socket_folder,
                                   std::uint16_t port) {
  std::vector<std::string> argv = {"/bin/sh",
                                   "-c",
                                   std::string(kFirstStart),
                                   "postgres",
                                   cluster.string(),
                                   bin.string(),
                                   std::to_string(options.primary_port)};
  std::vector<std::string> settings = {
      "listen_addresses=127.0.0.1",
      fmt::format("port={}", port),
      fmt::format("unix_socket_directories={}", socket_folder.string()),
      fmt::format("max_connections={}", options.max_clients),
      // In the cluster's own folder, where nothing is left behind after a kill.
      "dynamic_shared_memory_type=mmap",
  };
  settings.insert(settings.end(), options.config.begin(), options.config.end());
  for (std::string& setting : settings) {
    argv.emplace_back("-c");
    argv.push_back(std::move(setting));
  }
  return argv;
}

Started start_on(Testbed& testbed, const PostgresOptions& options, const fs::path& bin,
                 std::uint16_t port) {
  ServerSpec spec;
  spec.name = kPostgres.name;
  spec.user = unless_root("postgres");
  auto folder = testbed.make_server_folder("postgres", spec.user);
  if (!folder) return tl::unexpected(folder.error());
  spec.folder = *std::move(folder);
  const fs::path data = spec.folder / "data";
  const std::string socket = fmt::format("{}/.s.PGSQL.{}", data.string(), port);
  const bool short_enough = socket.size() < sizeof(sockaddr_un::sun_path);
  spec.argv = arguments(options, bin, data / "cluster", short_enough ? data : fs::path(), port);
  if (options.clock != nullptr) options.clock->put_under(spec);
  spec.ports = {port};
  // The superuser needs no password.
  spec.url = {"postgresql://postgres@", "/postgres"};
  spec.stop_signal = SIGINT;  // ends sessions instead of waiting for them
  spec.ready_within = std::chrono::seconds(30);
  spec.ready = postgres_is_ready;
  return Server::start(testbed, std::move(spec));
}

}  // namespace

tl::expected<fs::path, std::string> find_postgres() {
  const char* path = std::getenv("PATH");
  const std::string everywhere =
      (path == nullptr ? std::string() : std::string(path) + ":") + debian_folders();
  return find_program(kPostgres, everywhere);
}

Started start_postgres(Testbed& testbed, const PostgresOptions& options) {
  const auto program = find_postgres();
  if (!program) return tl::unexpected(program.error());
  std::error_code error;
  const fs::path real = fs::canonical(*program, error);
  const fs::path bin = (error ? *program : real).parent_path();
  return start_on_free_port<Server>(options.choose_port, [&](std::uint16_t port) {
    return start_on(testbed, options, bin, port);
  });
}

}  // namespace lockbench::testbed
