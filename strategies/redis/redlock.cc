#include "strategies/redis/redlock_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Redlock as its description has it: one node after the other.
std::unique_ptr<LockStrategy> make(const Context& context) {
  return std::make_unique<RedlockLock>(context, RedlockLock::Order::sequential);
}

const Registration redlock(Descriptor{
    .name = "redlock",
    .backend = "redis",
    .summary = "SET NX PX on a majority of independent nodes, asked one after the other",
    .acquire_commands = {"SET key token NX PX ttl", "EVALSHA release_if_token key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\"",
    .libraries = {{"Java", "Redisson getMultiLock over independent servers", "lease time = {ttl}"},
                  {"Python", "redlock-py", "lock(resource, {ttl}), retry_count, retry_delay"}},
    .traits = redlock_traits(),
    .hazards = redlock_hazards(),
    .make = make,
});

}  // namespace
}  // namespace lockbench::redis
