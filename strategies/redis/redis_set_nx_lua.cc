#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The textbook lock: SET NX PX with a random token, and a release that checks it in one step.
const Registration redis_set_nx_lua(Descriptor{
    .name = "redis-set-nx-lua",
    .backend = "redis",
    .summary =
        "SET NX PX with a random token, released by a script that checks it: the textbook lock",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\"",
    .typical = true,
    .libraries = {{"Java", "Spring Integration RedisLockRegistry", "expireAfter = {ttl}"},
                  {"Go", "bsm/redislock", "Obtain(ctx, key, {ttl}, &Options{RetryStrategy: ...})"},
                  {"Python", "redis-py Lock", "timeout = {ttl}, sleep, blocking_timeout"},
                  {"JavaScript", "redlock with one client",
                   "duration = {ttl}, retryDelay, retryCount"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({}, {kOverrun, kOneRedis, kKeyTtl}),
    .make = construct<TokenLock>,
});

}  // namespace
}  // namespace lockbench::redis
