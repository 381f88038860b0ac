#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/process/shims.h"
#include "testbed/proxy/mesh.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "testbed/servers/server.h"

/// The kinds of servers. Each is started on free loopback ports, with the testbed's secret as its
/// password, and is ready for use. In options, `tls`: clients must use TLS; null: no TLS. `clock`:
/// the server's clock; null: the machine's.
namespace lockbench::testbed {

inline constexpr Program kRedisServer{"redis-server", "redis-server"};
inline constexpr Program kRedisSentinel{"redis-sentinel", "redis-sentinel"};
inline constexpr Program kMemcached{"memcached", "memcached"};
inline constexpr Program kNats{"nats-server", "nats-server"};
inline constexpr Program kPostgres{"postgres", "postgresql"};
inline constexpr Program kMariadb{"mariadbd", "mariadb-server"};
inline constexpr Program kPgbouncer{"pgbouncer", "pgbouncer"};
inline constexpr Program kEtcd{"etcd", "etcd-server"};
/// For messages: the program itself is a jar for Java.
inline constexpr std::string_view kZookeeper = "zookeeper";

struct RedisOptions {
  bool durable = true;       ///< append-only file, fsync every second; false: nothing is saved
  bool notes_syncs = false;  ///< for forget_unsynced()
  std::uint32_t max_clients = 10'000;
  /// Further lines of redis.conf. Clients must log in unless one of these begins with "user default
  /// ".
  std::vector<std::string> config;
  const TlsFiles* tls = nullptr;
  const ClockShim* clock = nullptr;
  bool cluster = false;  ///< a server of a cluster, with a second port for the others
};
/// Passwords are in a configuration file that only the servers' account can read.
StartedServer start_redis(Testbed& testbed, const RedisOptions& options = {});

/// Lines for the configuration of a Redis or a Sentinel: the testbed's user and secret, the port,
/// and TLS, also towards other servers.
std::string redis_access_config(const Testbed& testbed, std::uint16_t port, const TlsFiles* tls);

/// The answers to inline commands of the all-powerful user. Takes at most a second.
tl::expected<std::string, std::string> ask_redis(const Server& server, std::string_view commands);
/// The text of the answer to one command, which is a bulk string; otherwise empty.
std::string ask_redis_text(const Server& server, std::string_view command);
/// The first line of the answer.
tl::expected<std::string, std::string> ask_redis_line(const Server& server,
                                                      std::string_view command);
/// Says a command until it is answered with a status, at least once. Throws Failure if that does
/// not come in time.
void tell_redis(const Server& server, std::string_view command,
                std::chrono::milliseconds within = {});

struct MemcachedOptions {
  std::uint32_t max_clients = 10'000;
  std::uint32_t memory_megabytes = 64;
  const TlsFiles* tls = nullptr;
  const ClockShim* clock = nullptr;
};
/// TCP only. Its data does not survive a restart.
StartedServer start_memcached(Testbed& testbed, const MemcachedOptions& options = {});

/// The answers to commands, with `whole` as in ask_until.
tl::expected<std::string, std::string> ask_memcached(
    const Server& server, std::string_view commands, std::chrono::milliseconds within,
    const std::function<bool(std::string_view)>& whole);

struct NatsOptions {
  std::uint32_t max_clients = 10'000;
  std::vector<std::string> users{};  ///< further ones: "{ user: \"plain\", password: \"...\" }"
  const TlsFiles* tls = nullptr;
};
/// One server with JetStream, whose streams are files. It writes each message to its file before it
/// acknowledges it, and by default syncs the file within two minutes.
StartedServer start_nats(Testbed& testbed, const NatsOptions& options = {});

/// The login user of PostgreSQL, and of the poolers in front of it.
inline constexpr std::string_view kSuperuser = "postgres";
/// The end of a URL without TLS. Overrides the environment.
inline constexpr std::string_view kPlainDatabase = "/postgres?gssencmode=disable&sslmode=disable";

struct PostgresOptions {
  std::uint32_t max_clients = 100;
  std::vector<std::string> config;  ///< further settings: "deadlock_timeout=2s"
  std::uint16_t primary_port = 0;   ///< of the primary to follow, as its replica; 0: a primary
  const TlsFiles* tls = nullptr;
  const ClockShim* clock = nullptr;
};
/// The server program, in PATH or in Debian's folders; the newest version if there are several.
tl::expected<std::filesystem::path, std::string> find_postgres();
/// A PostgreSQL with its own database cluster, as durable as PostgreSQL is by default. Its
/// superuser logs in with the secret, also on its socket. Other clusters are not touched.
StartedServer start_postgres(Testbed& testbed, const PostgresOptions& options = {});

struct PgbouncerOptions {
  std::string pool_mode = "transaction";  ///< or "session"
  int pool_size = 20;                     ///< server sessions
  int max_clients = 1000;
};
/// A PgBouncer in front of the PostgreSQL on port `postgres`, for its superuser. It opens server
/// connections as needed, and gives a client the one used last.
StartedServer start_pgbouncer(Testbed& testbed, std::uint16_t postgres,
                              const PgbouncerOptions& options = {});

struct MysqlOptions {
  std::uint32_t max_clients = 100;
  std::vector<std::string> config;  ///< further options: "wait-timeout=2"
  const TlsFiles* tls = nullptr;
  const ClockShim* clock = nullptr;
};
/// The server program, in PATH or in Debian's folder.
tl::expected<std::filesystem::path, std::string> find_mariadb();
/// A MariaDB with its own data, as durable as MariaDB is by default. Only the testbed's user can
/// log in, who has all rights. The machine's own data and configuration are not touched.
StartedServer start_mariadb(Testbed& testbed, const MysqlOptions& options = {});

/// The all-powerful user: authentication cannot be enabled without a user of this name.
inline constexpr std::string_view kEtcdRoot = "root";

struct EtcdOptions {
  Mesh* mesh = nullptr;  ///< between the members of a cluster; null: none
  const TlsFiles* tls = nullptr;
};
/// An etcd of one member, as durable as etcd is by default. Its elections are quicker than by
/// default, so that its shortest lease is one second.
StartedServer start_etcd(Testbed& testbed, const EtcdOptions& options = {});
/// Members of one cluster, started side by side; ready when all of them serve. Restarted ones must
/// keep their data.
StartedCluster start_etcd_cluster(Testbed& testbed, int members = 3,
                                  const EtcdOptions& options = {});

struct ZookeeperOptions {
  std::vector<std::string> config;  ///< further settings, which replace ours: "snapCount=1000"
  std::vector<std::string> java;    ///< further arguments of Java's: "-Dname=value"
  const ClockShim* clock = nullptr;
  Mesh* mesh = nullptr;  ///< between the members of an ensemble; null: none
  const TlsFiles* tls = nullptr;
};
/// Debian's path of the server's jar; the error also says if there is no Java to run it.
tl::expected<std::filesystem::path, std::string> find_zookeeper();
/// "3.8.0", from the jar's full name; "unknown" if that has none.
std::string zookeeper_version(const std::filesystem::path& jar);
/// As durable as ZooKeeper is by default, for any number of clients. Its root belongs to the
/// testbed's user. Other servers are not touched.
StartedServer start_zookeeper(Testbed& testbed, const ZookeeperOptions& options = {});
/// An ensemble of `size` (three, or five), all of them ready. Only they can join it.
StartedCluster start_zookeeper_ensemble(Testbed& testbed, int size = 3,
                                        const ZookeeperOptions& options = {});
/// "leader", "follower" or "standalone"; empty if it does not serve at the moment.
std::string zookeeper_mode(const Server& server);

}  // namespace lockbench::testbed
