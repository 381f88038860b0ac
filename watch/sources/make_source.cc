#include <fmt/format.h>

#include "strategies/memcached/client/endpoint.h"
#include "strategies/store.h"
#include "strategies/zookeeper/client/endpoint.h"
#include "watch/sources/memcached_source.h"
#include "watch/sources/redis_source.h"
#include "watch/sources/zookeeper_source.h"
#ifdef LOCKBENCH_HAS_ETCD
#include "watch/sources/etcd_source.h"
#endif
#ifdef LOCKBENCH_HAS_POSTGRES
#include "watch/sources/postgres_source.h"
#endif

namespace lockbench::watch {
namespace {

using Made = tl::expected<std::unique_ptr<Source>, std::string>;

/// The endpoint of the only URL.
template <class Endpoint>
Made one(const std::string& store, const std::vector<std::string>& urls, const Request& request,
         tl::expected<Endpoint, std::string> (*parse)(std::string_view),
         std::unique_ptr<Source> (*make)(Endpoint, const Request&)) {
  if (urls.size() != 1) {
    return tl::unexpected(
        fmt::format("{}: one server or cluster at a time, not {}", store, urls.size()));
  }
  auto endpoint = parse(urls.front());
  if (!endpoint) return tl::unexpected(std::move(endpoint.error()));
  return make(*std::move(endpoint), request);
}

Made redis_source(const std::vector<std::string>& urls, const Request& request) {
  std::vector<redis::Endpoint> nodes;
  for (const std::string& url : urls) {
    auto node = redis::parse_endpoint(url);
    if (!node) return tl::unexpected(std::move(node.error()));
    nodes.push_back(*std::move(node));
  }
  if (nodes.empty()) return tl::unexpected<std::string>("redis: no URL was given");
  if (nodes.size() == 1) return make_redis_source(std::move(nodes.front()), request);
  return make_redis_quorum(nodes, request);
}

}  // namespace

Made make_source(const std::string& store, const std::vector<std::string>& urls,
                 const Request& request) {
  if (store == "redis") return redis_source(urls, request);
  if (store == "zookeeper") {
    return one(store, urls, request, zookeeper::parse_endpoint, make_zookeeper_source);
  }
  if (store == "memcached") {
    if (request.keys.empty()) {
      return tl::unexpected<std::string>(
          "memcached: its keys can be neither listed nor watched: name those of the locks");
    }
    return one(store, urls, request, memcached::parse_endpoint, make_memcached_source);
  }
#ifdef LOCKBENCH_HAS_ETCD
  if (store == "etcd") return one(store, urls, request, etcd::parse_endpoint, make_etcd_source);
#endif
#ifdef LOCKBENCH_HAS_POSTGRES
  if (store == "postgres") {
    const auto parse = [](std::string_view dsn) {
      return postgres::parse_endpoint(std::string(dsn));
    };
    return one<postgres::Endpoint>(store, urls, request, parse, make_postgres_source);
  }
#endif
  for (const StoreKind* kind : store_kinds()) {
    if (kind->name == store && !kind->not_built.empty()) {
      return tl::unexpected(fmt::format("{}: {}", store, kind->not_built));
    }
  }
  return tl::unexpected(fmt::format(
      "{} cannot be watched; allowed: redis, etcd, zookeeper, postgres, memcached", store));
}

}  // namespace lockbench::watch
