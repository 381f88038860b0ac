#include "strategies/redis/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SET NX PX: lock and TTL in one step. The release does not ask whose lock it deletes.
class SetNx : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<bool> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, "1");
  }

  ReleaseResult release(const Lease& lease) override { return release_unchecked(redis(), lease); }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_unchecked(redis(), env(), lease, ttl);
  }
};

const Registration registration(Descriptor{
    .name = "redis-set-nx",
    .backend = "redis",
    .summary = "SET NX PX and DEL: after an overrun it deletes its successor's lock",
    .acquire_commands = {"SET key 1 NX PX ttl"},
    .release_commands = {"DEL key"},
    .source = "articles 000, 001, 002",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none},
    .hazards = with_ttl_hazards({{"late-release", HazardOutcome::foreign_release},
                                 {"release-without-holding", HazardOutcome::foreign_release},
                                 {"lost-answer-acquire", HazardOutcome::stuck},
                                 {"lost-answer-release", HazardOutcome::foreign_release}}),
    .make = construct<SetNx>,
});

}  // namespace
}  // namespace lockbench::redis
