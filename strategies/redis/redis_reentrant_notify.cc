#include "strategies/redis/reentrant_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Redisson's lock on a single server (redis-reentrant-wait: on one with replicas): the owner is
/// unique, a timer renews it, and a release notifies waiting clients.
const Registration redis_reentrant_notify(Descriptor{
    .name = "redis-reentrant-notify",
    .backend = "redis",
    .summary = "Redisson's lock on a single server: re-entrant, renewed, a release wakes waiting "
               "clients by PUBLISH",
    .acquire_commands = {"EVALSHA reentrant_acquire key owner ttl", "SUBSCRIBE channel",
                         "UNSUBSCRIBE channel"},
    .release_commands = {"EVALSHA reentrant_release key owner ttl channel"},
    .renew_commands = {"EVALSHA reentrant_renew key owner ttl"},
    .source = "Redisson's RLock and LockPubSub",
    .typical = true,
    .libraries = {{"Java", "Redisson RLock", "lockWatchdogTimeout = {ttl}"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .reentrant = true,
               .renews = RenewalTiming{},
               .renewable = true,
               .waiting = WaitPolicy::notify(),
               .waiting_choices = {}},
    .hazards = join_hazards({}, {kRenewed, kOneRedis, kKeyTtl}, {"reentry"}),
    .make = construct<RedissonLock>,
});

}  // namespace
}  // namespace lockbench::redis
