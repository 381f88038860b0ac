#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// Article 002's first form: the value names the owner, so that no other client can release it;
/// still without a TTL.
class SetnxToken : public TokenLock {
 public:
  using TokenLock::TokenLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto set = set_nx(lease.key, lease.token, request.stop);
    if (!set) return tl::unexpected(set.error());
    if (!*set) return false;
    lease.state = valid_until(TimePoint::max());
    return true;
  }

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }
};

const Registration redis_setnx_token(Descriptor{
    .name = "redis-setnx-token",
    .backend = "redis",
    .summary = "SETNX with the owner's token, released by a script that checks it; no TTL",
    .acquire_commands = {"SETNX key token"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it never expires: a crash leaves it locked",
    .traits = {.expiry = Expiry::none,
               .release_check = OwnerCheck::atomic,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"crash-holding", HazardOutcome::stuck},
                             {"crash-mid-acquire", HazardOutcome::stuck},
                             {"host-crash", HazardOutcome::stuck},
                             {"runaway-holder", HazardOutcome::stuck}},
                            {kOneRedis}),
    .make = construct<SetnxToken>,
});

}  // namespace
}  // namespace lockbench::redis
