#include "deployment/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "testbed/servers/etcd_server.h"
#include "testbed/servers/memcached_server.h"
#include "testbed/servers/postgres_server.h"
#include "testbed/servers/redis_server.h"
#include "testbed/servers/zookeeper_server.h"

namespace lockbench::cli {
namespace {

using Started = tl::expected<std::unique_ptr<testbed::Server>, std::string>;

using Members = std::vector<std::shared_ptr<testbed::Server>>;
using StartedCluster = tl::expected<Members, std::string>;

/// "127.0.0.1:1,127.0.0.1:2"
std::string on_all(const std::vector<std::uint16_t>& ports) {
  std::string all;
  for (const std::uint16_t port : ports) {
    all += fmt::format("{}127.0.0.1:{}", all.empty() ? "" : ",", port);
  }
  return all;
}

Backend redis() {
  return {.name = "redis",
          .option = "--redis",
          .program = testbed::kRedisServer.name,
          .find_program = [] { return testbed::find_program(testbed::kRedisServer); },
          .start = [](testbed::Testbed& testbed, std::uint32_t connections) -> Started {
            testbed::RedisOptions options;
            options.max_clients = connections;
            return testbed::start_redis(testbed, options);
          },
          .url_on = [](std::uint16_t port) { return fmt::format("redis://127.0.0.1:{}", port); }};
}

Backend memcached() {
  return {.name = "memcached",
          .option = "--memcached",
          .program = testbed::kMemcached.name,
          .find_program = [] { return testbed::find_program(testbed::kMemcached); },
          .start = [](testbed::Testbed& testbed, std::uint32_t connections) -> Started {
            testbed::MemcachedOptions options;
            options.max_clients = connections;
            return testbed::start_memcached(testbed, options);
          },
          .url_on = [](std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }};
}

Backend postgres() {
  return {.name = "postgres",
          .option = "--postgres",
          .program = testbed::kPostgres.name,
          .find_program = [] { return testbed::find_postgres(); },
          .start = [](testbed::Testbed& testbed, std::uint32_t connections) -> Started {
            testbed::PostgresOptions options;
            options.max_clients = connections;
            return testbed::start_postgres(testbed, options);
          },
          .url_on =
              [](std::uint16_t port) {
                return fmt::format("postgresql://postgres@127.0.0.1:{}/postgres", port);
              }};
}

Backend zookeeper() {
  return {.name = "zookeeper",
          .option = "--zookeeper",
          .program = testbed::kZookeeper,
          .find_program = [] { return testbed::find_zookeeper(); },
          .start = [](testbed::Testbed& testbed, std::uint32_t /*connections*/) -> Started {
            return testbed::start_zookeeper(testbed);
          },
          .url_on = [](std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); },
          .start_cluster = [](testbed::Testbed& testbed, int members) -> StartedCluster {
            auto started = testbed::start_zookeeper_ensemble(testbed, members);
            if (!started) return tl::unexpected(started.error());
            return Members(std::make_move_iterator(started->begin()),
                           std::make_move_iterator(started->end()));
          },
          .url_on_all = [](const std::vector<std::uint16_t>& ports) { return on_all(ports); },
          .leads =
              [](const testbed::Server& server) {
                return testbed::zookeeper_mode(
                           dynamic_cast<const testbed::ZookeeperServer&>(server)) == "leader";
              },
          .program_version = testbed::zookeeper_version};
}

Backend etcd() {
  return {.name = "etcd",
          .option = "--etcd",
          .program = testbed::kEtcd.name,
          .find_program = [] { return testbed::find_program(testbed::kEtcd); },
          // Its connections have no bound of their own.
          .start = [](testbed::Testbed& testbed, std::uint32_t) -> Started {
            return testbed::start_etcd(testbed);
          },
          .url_on = [](std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); },
          .start_cluster = [](testbed::Testbed& testbed, int members) -> StartedCluster {
            auto started = testbed::start_etcd_cluster(testbed, members);
            if (!started) return tl::unexpected(started.error());
            const std::shared_ptr<testbed::EtcdCluster> cluster = *std::move(started);
            Members servers;
            for (std::size_t i = 0; i < cluster->size(); ++i) {
              servers.emplace_back(cluster, &cluster->member(i));
            }
            return servers;
          },
          .url_on_all =
              [](const std::vector<std::uint16_t>& ports) { return "http://" + on_all(ports); },
          .leads =
              [](const testbed::Server& server) {
                return testbed::etcd_leads(dynamic_cast<const testbed::EtcdServer&>(server));
              }};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {redis(), memcached(), postgres(), zookeeper(), etcd()};
  return all;
}

const Backend* find_backend(std::string_view name) {
  const auto& all = backends();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Backend& backend) { return backend.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace lockbench::cli
