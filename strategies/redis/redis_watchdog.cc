#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The textbook lock with a timer that renews it while it is held, checking the owner: a task may
/// take longer than the TTL.
const Registration redis_watchdog(Descriptor{
    .name = "redis-watchdog",
    .backend = "redis",
    .summary = "SET NX PX, renewed every third of the TTL by a script that checks the token",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .renew_commands = {"EVALSHA renew_if_token key token ttl"},
    .source = "Redisson's watchdog, on a plain key",
    .libraries = {{"Java", "Spring Integration RedisLockRegistry, from 6.4 on",
                   "expireAfter = {ttl}, setRenewalTaskScheduler"},
                  {"Go", "bsm/redislock", "Obtain with {ttl}, and Refresh every third of it"},
                  {"Python", "python-redis-lock", "expire = {ttl}, auto_renewal = True"},
                  {"JavaScript", "redlock with one client",
                   "using() with duration = {ttl}, automaticExtensionThreshold"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .renews = RenewalTiming{},
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({}, {kRenewed, kOneRedis, kKeyTtl}),
    .make = construct<TokenLock>,
});

}  // namespace
}  // namespace lockbench::redis
