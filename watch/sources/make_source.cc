#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "strategies/store.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

/// A store whose locks this build can watch.
struct Watchable {
  std::string_view store;
  Made (*make)(const std::string& url, const Request& request);
};

constexpr auto kWatchable = std::to_array<Watchable>({
    {"redis", make_redis_source},
#ifdef LOCKBENCH_HAS_ETCD
    {"etcd", make_etcd_source},
#endif
    {"zookeeper", make_zookeeper_source},
    {"nats", make_nats_source},
#ifdef LOCKBENCH_HAS_POSTGRES
    {"postgres", make_postgres_source},
#endif
#ifdef LOCKBENCH_HAS_MYSQL
    {"mysql", make_mysql_source},
#endif
});

}  // namespace

Made make_source(const std::string& store, const std::string& url, const Request& request) {
  const auto* const known = std::ranges::find(kWatchable, store, &Watchable::store);
  if (known != kWatchable.end()) return known->make(url, request);
  const StoreKind* const kind = StoreRegistration::find(store);
  if (kind != nullptr && !kind->not_built.empty()) {
    return tl::unexpected(fmt::format("{}: {}", store, kind->not_built));
  }
  return tl::unexpected(fmt::format(
      "{} cannot be watched; allowed: redis, etcd, zookeeper, nats, postgres, mysql", store));
}

}  // namespace lockbench::watch
