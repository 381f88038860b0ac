#include "testbed/servers/postgres_server.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "testbed/servers/clients.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// Makes the cluster, if there is none, and becomes the server. So a restart without data is the
/// same as a first start, and whoever ends the server while it starts ends initdb too. What initdb
/// writes reaches the disk with the first checkpoint; only the server's own work must survive a
/// crash.
constexpr std::string_view kScript = R"(
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

/// Only the server that could listen writes this to our log.
bool ready(const Server& server) {
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

}  // namespace

class PostgresStarter {
 public:
  using Result = tl::expected<std::unique_ptr<PostgresServer>, std::string>;

  PostgresStarter(Testbed& testbed, const PostgresOptions& options, const fs::path& program)
      : testbed_(testbed), options_(options), bin_(program.parent_path()) {}

  Result start_on(std::uint16_t port) const {
    ServerSpec spec;
    spec.name = kPostgres.name;
    spec.user = unless_root("postgres");
    auto folder = testbed_.make_server_folder("postgres", spec.user);
    if (!folder) return tl::unexpected(folder.error());
    spec.folder = *std::move(folder);
    const fs::path data = spec.folder / "data";
    const std::string socket = fmt::format("{}/.s.PGSQL.{}", data.string(), port);
    const fs::path socket_folder =
        socket.size() < sizeof(sockaddr_un::sun_path) ? data : fs::path();
    spec.argv = arguments(data / "cluster", socket_folder, port);
    if (options_.clock != nullptr) options_.clock->put_under(spec);
    spec.ports = {port};
    spec.stop_signal = SIGINT;  // ends sessions instead of waiting for them
    spec.ready_within = std::chrono::seconds(30);
    spec.ready = ready;
    std::unique_ptr<PostgresServer> server(
        new PostgresServer(testbed_, std::move(spec), socket_folder));
    if (auto launched = server->launch(); !launched) return tl::unexpected(launched.error());
    return server;
  }

 private:
  std::vector<std::string> arguments(const fs::path& cluster, const fs::path& socket_folder,
                                     std::uint16_t port) const {
    std::vector<std::string> argv = {"/bin/sh",
                                     "-c",
                                     std::string(kScript),
                                     "postgres",
                                     cluster.string(),
                                     bin_.string(),
                                     std::to_string(options_.primary_port)};
    std::vector<std::string> settings = {
        "listen_addresses=127.0.0.1",
        fmt::format("port={}", port),
        fmt::format("unix_socket_directories={}", socket_folder.string()),
        fmt::format("max_connections={}", options_.max_clients),
        // In the cluster's own folder, where nothing is left behind after a kill.
        "dynamic_shared_memory_type=mmap",
    };
    settings.insert(settings.end(), options_.config.begin(), options_.config.end());
    for (std::string& setting : settings) {
      argv.emplace_back("-c");
      argv.push_back(std::move(setting));
    }
    return argv;
  }

  Testbed& testbed_;
  const PostgresOptions& options_;
  const fs::path bin_;
};

PostgresServer::PostgresServer(const Testbed& testbed, ServerSpec spec, fs::path socket_folder)
    : Server(testbed, std::move(spec)), socket_folder_(std::move(socket_folder)) {}

std::string PostgresServer::url() const {
  return fmt::format("postgresql://postgres@127.0.0.1:{}/postgres", port());
}

tl::expected<fs::path, std::string> find_postgres() {
  const char* path = std::getenv("PATH");
  const std::string everywhere =
      (path == nullptr ? std::string() : std::string(path) + ":") + debian_folders();
  return find_program(kPostgres, everywhere);
}

tl::expected<std::unique_ptr<PostgresServer>, std::string> start_postgres(
    Testbed& testbed, const PostgresOptions& options) {
  const auto program = find_postgres();
  if (!program) return tl::unexpected(program.error());
  std::error_code error;
  const fs::path real = fs::canonical(*program, error);
  const PostgresStarter starter(testbed, options, error ? *program : real);
  return start_on_free_port<PostgresServer>(
      options.choose_port, [&](std::uint16_t port) { return starter.start_on(port); });
}

}  // namespace lockbench::testbed
