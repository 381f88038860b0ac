#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SET NX PX, then WAIT until the replicas have it too, as article 004 considers. If too few
/// acknowledge in time, the lock is released and the acquisition refused. A renewal counts only
/// once the replicas have the new TTL.
class WaitForReplicas : public TokenLock {
 public:
  explicit WaitForReplicas(const Context& context) : TokenLock(context, Replicas::all) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto taken = TokenLock::try_acquire(request, lease);
    if (!taken || !taken->granted) return taken;
    const StoreResult<void> kept = await_replicas(request.stop);
    if (kept) return taken;
    // After a lost answer acquire() releases the lock.
    if (kept.error().kind == StoreError::Kind::unanswered) return tl::unexpected(kept.error());
    const auto freed = give_back(lease, request.stop);
    if (freed) return tl::unexpected(kept.error());
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }
};

const Registration redis_wait(on_redis({
    .name = "redis-wait",
    .summary = "SET NX PX, then WAIT for the replicas; released and refused if too few acknowledge "
               "in time",
    .acquire_commands = {"SET key token NX PX ttl", "WAIT replicas timeout"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"WAIT\"",
    .typical = true,
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .needs_replicas = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<WaitForReplicas>,
}));

}  // namespace
}  // namespace lockbench::redis
