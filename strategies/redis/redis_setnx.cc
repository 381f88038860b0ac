#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The oldest form: the client that creates the key has the lock, for ever if it dies.
class Setnx : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto set = set_nx(lease.key, "1", request.stop);
    if (!set) return tl::unexpected(set.error());
    if (!*set) return false;
    lease.state = valid_until(TimePoint::max());
    return true;
  }

  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return release_unchecked(redis(), lease, stop);
  }
};

const Registration redis_setnx(Descriptor{
    .name = "redis-setnx",
    .backend = "redis",
    .summary = "SETNX and DEL, no TTL: a crashed holder blocks all clients for ever",
    .acquire_commands = {"SETNX key 1"},
    .release_commands = {"DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it never expires: a crash leaves it locked",
    .traits = {.expiry = Expiry::none,
               .release_check = OwnerCheck::none,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"crash-holding", HazardOutcome::stuck},
                             {"crash-mid-acquire", HazardOutcome::stuck},
                             {"host-crash", HazardOutcome::stuck},
                             {"runaway-holder", HazardOutcome::stuck}},
                            {kUncheckedRelease, kOneRedis}),
    .make = construct<Setnx>,
});

}  // namespace
}  // namespace lockbench::redis
