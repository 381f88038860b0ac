#include <string>

#include "strategies/number.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

constexpr Form<std::uint64_t> kNumber{"a number or nil",
                                      [](const Reply& reply) -> std::optional<std::uint64_t> {
                                        if (reply.is_nil()) return 0;
                                        if (reply.type != Reply::Type::string) return std::nullopt;
                                        return parse_number<std::uint64_t>(reply.text);
                                      }};

/// The number is read, and written unless another client has changed it.
class CasRetry : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

 protected:
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return read_number(request, lease);
  }
  StoreResult<TryResult> read_number(const AcquireRequest& request, Lease& lease) {
    return before_request(redis().call(kNumber, {"GET", lease.key}, request.stop))
        .map([&](std::uint64_t number) {
          lease.fencing = number;
          return TryResult(true);
        });
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const std::uint64_t seen = lease.fencing.value_or(0);
    return redis().call(kFlag, scripts::set_if_value, {lease.key},
                        {std::to_string(seen), std::to_string(seen + 1)}, stop);
  }
  Duration validity(Duration /*ttl*/) const override { return Duration::max(); }
};

/// Redis adds one: nothing is read before.
class AtomicUpdate : public CasRetry {
 public:
  using CasRetry::CasRetry;

 protected:
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (request.mode == Mode::shared) return read_number(request, lease);
    return TryResult(true);
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return redis().call(kCount, {"INCR", lease.key}, stop).map([](std::int64_t) { return true; });
  }
};

Descriptor without_lock(Descriptor control) {
  control.traits = {.expiry = Expiry::none,
                    .release_check = OwnerCheck::atomic,
                    .promises_exclusion = false,
                    .updates = true,
                    .waiting_choices = {}};
  return on_redis(std::move(control));
}

const Registration redis_cas_retry(without_lock({
    .name = "redis-cas-retry",
    .summary = "No lock: writes the number if it is as it was read, or does the work again",
    .acquire_commands = {"GET key"},
    .release_commands = {"EVALSHA set_if_value key seen next"},
    .source = "redis.io \"Transactions\", \"Optimistic locking using check-and-set\"",
    .make = construct<CasRetry>,
}));

const Registration redis_atomic_update(without_lock({
    .name = "redis-atomic-update",
    .summary = "No lock: one INCR after the work, which does not need the number",
    .release_commands = {"INCR key"},
    .source = "redis.io \"INCR\", \"Pattern: Counter\"",
    .make = construct<AtomicUpdate>,
}));

}  // namespace
}  // namespace lockbench::redis
