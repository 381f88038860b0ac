#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SET NX PX: lock and TTL in one step. The release does not check the owner.
class SetNx : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, "1");
  }
};

const Registration redis_set_nx(Descriptor{
    .name = "redis-set-nx",
    .backend = "redis",
    .summary = "SET NX PX and DEL: after an overrun it deletes its successor's lock",
    .acquire_commands = {"SET key 1 NX PX ttl"},
    .release_commands = {"DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "its release frees the lock of another client",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({},
                            {kUncheckedOverrun, kUncheckedRelease, kOverrun, kOneRedis, kKeyTtl}),
    .make = construct<SetNx>,
});

}  // namespace
}  // namespace lockbench::redis
