#include "strategies/redis/redlock_lock.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Redlock at the speed of its majority: asks all nodes at once and does not wait for late answers.
std::unique_ptr<LockStrategy> make_parallel(const Context& context) {
  return std::make_unique<RedlockLock>(context, RedlockLock::Order::parallel);
}

const Registration redlock_parallel(Descriptor{
    .name = "redlock-parallel",
    .backend = "redis",
    .summary = "SET NX PX on all independent nodes at once, granted by the majority",
    .acquire_commands = {"SET key token NX PX ttl", "EVALSHA release_if_token key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"Distributed Locks with Redis\", \"send the SET commands to the N "
              "instances at the same time\"",
    .typical = true,
    .libraries = {{"Go", "redsync",
                   "WithExpiry({ttl}), WithTries, WithRetryDelay, WithTimeoutFactor"},
                  {"Python", "pottery Redlock", "auto_release_time = {ttl}, masters"},
                  {"JavaScript", "redlock",
                   "duration = {ttl}, driftFactor, retryDelay, retryCount"}},
    .traits = redlock_traits(),
    .hazards = redlock_hazards(),
    .make = make_parallel,
});

}  // namespace
}  // namespace lockbench::redis
