#include "strategies/observed_lease.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Keys whose version is their value: no two writes of a lease write the same.
class Values : public VersionedStore {
 public:
  explicit Values(std::unique_ptr<Connection> redis) : redis_(std::move(redis)) {}

  StoreResult<void> connect() override { return redis_->connect(); }
  const std::string& display() const override { return redis_->display(); }
  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override {
    return redis_->call(kTextOrNil, {"GET", key}, stop)
        .map([](const std::optional<std::string>& value) {
          return value ? std::optional(VersionedItem{*value, *value}) : std::nullopt;
        });
  }
  /// Without a TTL: the form that it is used for does not expire.
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override {
    const std::string_view old = put.over == nullptr ? std::string_view() : put.over->version;
    return redis_->call(kFlag, scripts::put_if_same, {put.key}, {put.value, old}, stop);
  }

 private:
  const std::unique_ptr<Connection> redis_;
};

class RedisObservedLease : public ObservedLease {
 public:
  explicit RedisObservedLease(const Context& context)
      : ObservedLease(context, [endpoint = endpoints_of(context, parse_endpoint).front(),
                                &factory = context.services.get_or_make<ConnectionFactory>(
                                    make_connection_factory)](const Timeouts& timeouts, Env& env) {
          return std::make_unique<Values>(factory.make(endpoint, timeouts, env));
        }) {}
};

const Registration redis_observed_lease(
    observed({.name = "redis-observed-lease",
              .backend = "redis",
              .summary = "A record without TTL: taken over after a TTL without a change, by the "
                         "candidate's own clock",
              .source = "client-go's leaderelection, on a key",
              .make = construct<RedisObservedLease>},
             {"GET key", "EVALSHA put_if_same key record record"}));

}  // namespace
}  // namespace lockbench::redis
