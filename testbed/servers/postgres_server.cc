#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

/// Creates the cluster if there is none, and executes the server. So a restart without data equals
/// a first start, and a kill during the start ends initdb too. initdb does not sync: its files
/// reach the disk with the first checkpoint.
constexpr std::string_view kFirstStart = R"(
cluster=$1; bin=$2; primary=$3; user=$4; password=$5; shift 5
# The caller's settings for its own servers, and its certificates.
export HOME=/nonexistent
for name in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p'); do unset "$name"; done
if [ ! -e "$cluster/PG_VERSION" ] && [ "$primary" = 0 ]; then
  "$bin/initdb" --pgdata="$cluster" --username="$user" --auth=scram-sha-256 \
    --pwfile="$password" --encoding=UTF8 --locale=C --no-sync --no-instructions >/dev/null || exit 1
elif [ ! -e "$cluster/PG_VERSION" ]; then
  "$bin/pg_basebackup" --pgdata="$cluster" --no-password --write-recovery-conf \
    --dbname="host=127.0.0.1 port=$primary user=$user passfile='$password'" \
    --checkpoint=fast --no-sync || exit 1
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

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest keyed(const Digest& key, std::string_view text) {
  Digest result{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data(), nullptr);
  return result;
}

template <class Bytes>
std::string base64(const Bytes& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// PostgreSQL's stored form of a password for SCRAM-SHA-256 (RFC 5802), which it also accepts in
/// place of the password. One iteration: more would protect only a weak password, and cost CPU with
/// each connection.
std::string scram_verifier(std::string_view secret) {
  constexpr int kIterations = 1;
  // No salt needed: the secret is random, and no two runs share it.
  constexpr std::array<unsigned char, 16> kSalt{};
  Digest salted{};
  PKCS5_PBKDF2_HMAC(secret.data(), static_cast<int>(secret.size()), kSalt.data(),
                    static_cast<int>(kSalt.size()), kIterations, EVP_sha256(),
                    static_cast<int>(salted.size()), salted.data());
  const Digest client = keyed(salted, "Client Key"), server = keyed(salted, "Server Key");
  Digest stored{};
  SHA256(client.data(), client.size(), stored.data());
  return fmt::format("SCRAM-SHA-256${}:{}${}:{}", kIterations, base64(kSalt), base64(stored),
                     base64(server));
}

/// Also writes the access rules.
void speak_tls(const Testbed& testbed, const TlsFiles& files, ServerSpec& spec) {
  const fs::path hosts = spec.folder / "hba";
  std::vector<std::string> settings = {"ssl=on", "ssl_cert_file=" + files.certificate.string(),
                                       "ssl_key_file=" + files.key.string(),
                                       "hba_file=" + hosts.string()};
  if (files.asks_clients) settings.push_back("ssl_ca_file=" + files.ca.string());
  for (const std::string& setting : settings) spec.argv.insert(spec.argv.end(), {"-c", setting});
  spec.url.after = files.query("/postgres?gssencmode=disable&sslmode=verify-full&sslrootcert=");
  spec.tls = &files;
  need(testbed.write_file(hosts,
                          fmt::format("local all all scram-sha-256\n"
                                      "hostssl all,replication all 127.0.0.1/32 scram-sha-256 {}\n",
                                      files.asks_clients ? "clientcert=verify-ca" : "")));
}

std::unique_ptr<Server> start_on(Testbed& testbed, const PostgresOptions& options,
                                 std::uint16_t port) {
  const fs::path program = need(find_postgres());
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  const fs::path bin = (error ? program : real).parent_path();
  ServerSpec spec = ServerSpec::in_new_folder(testbed, kPostgres.name, {port});
  const fs::path data = spec.folder / "data";
  const std::string socket = fmt::format("{}/.s.PGSQL.{}", data.string(), port);
  const bool short_enough = socket.size() < sizeof(sockaddr_un::sun_path);
  // Stays: a start without data needs it again, as does a replica that lost its primary.
  const fs::path password = spec.folder / "password";
  const bool first = options.primary_port == 0;  // initdb takes a verifier, a replica a passfile
  need(testbed.write_file(
      password, (first ? scram_verifier(testbed.secret()) : "*:*:*:*:" + testbed.secret()) + "\n"));
  spec.argv = {"/bin/sh",
               "-c",
               std::string(kFirstStart),
               "postgres",
               (data / "cluster").string(),
               bin.string(),
               std::to_string(options.primary_port),
               std::string(kSuperuser),
               password.string()};
  std::vector<std::string> settings = {
      "listen_addresses=127.0.0.1",
      fmt::format("port={}", port),
      fmt::format("unix_socket_directories={}", short_enough ? data.string() : ""),
      fmt::format("max_connections={}", options.max_clients),
      // In the cluster's own folder, to be removed with it.
      "dynamic_shared_memory_type=mmap",
  };
  settings.insert(settings.end(), options.config.begin(), options.config.end());
  for (const std::string& setting : settings) spec.argv.insert(spec.argv.end(), {"-c", setting});
  spec.url = {"postgresql://" + testbed.login(kSuperuser), std::string(kPlainDatabase)};
  if (options.tls != nullptr) speak_tls(testbed, *options.tls, spec);
  spec.clock = options.clock;
  spec.ready = postgres_is_ready;
  return need(Server::start(testbed, std::move(spec)));
}

/// Written to this server's log only if it could bind its port.
bool pgbouncer_is_ready(const Server& server) {
  return server.log().find("process up: PgBouncer") != std::string::npos;
}

}  // namespace

tl::expected<fs::path, std::string> find_postgres() {
  return find_program(kPostgres, debian_folders());
}

StartedServer start_postgres(Testbed& testbed, const PostgresOptions& options) {
  return start_on_free_port<Server>(
      testbed.choose_port, [&](std::uint16_t port) { return start_on(testbed, options, port); });
}

StartedServer start_pgbouncer(Testbed& testbed, std::uint16_t postgres,
                              const PgbouncerOptions& options) {
  return start_on_free_port<Server>(testbed.choose_port, [&](std::uint16_t port) {
    // Debian's folder, which is not in the PATH of every user.
    const fs::path program = need(find_program(kPgbouncer, "/usr/sbin"));
    ServerSpec spec = ServerSpec::in_new_folder(testbed, kPgbouncer.name, {port});
    const fs::path config = spec.folder / "pgbouncer.ini", users = spec.folder / "users";
    // For its clients, and for itself as a client.
    need(testbed.write_file(users, fmt::format("\"{}\" \"{}\"\n", kSuperuser, testbed.secret())));
    const std::string text = fmt::format(
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
        "max_client_conn = {}\n"
        "ignore_startup_parameters = extra_float_digits\n",
        postgres, kSuperuser, port, users.string(), options.pool_mode, options.pool_size,
        options.max_clients);
    need(testbed.write_file(config, text));
    spec.argv = {program.string(), config.string()};
    spec.url = {"postgresql://" + testbed.login(kSuperuser), std::string(kPlainDatabase)};
    spec.ready = pgbouncer_is_ready;
    return need(Server::start(testbed, std::move(spec)));
  });
}

}  // namespace lockbench::testbed
