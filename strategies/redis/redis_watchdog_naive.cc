#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// The guard thread as in the article: EXPIRE without checking the owner, the first time when a
/// fifth of the TTL is left.
class WatchdogNaive : public TokenLock {
 public:
  using TokenLock::TokenLock;

 protected:
  std::optional<RenewalProtocol> renewal_protocol() const override {
    return RenewalProtocol{.unchecked = "EXPIRE"};
  }
};

const Registration redis_watchdog_naive(Descriptor{
    .name = "redis-watchdog-naive",
    .backend = "redis",
    .summary = "SET NX PX, renewed by EXPIRE (whole seconds) without checking the owner",
    .acquire_commands = {"SET key token NX PX ttl"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .renew_commands = {"EXPIRE key seconds"},
    .source = "common practice: a guard thread",
    .superseded_by = "redis-watchdog",
    .superseded_because = "it renews the lock of another client",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::none,
               .renews = RenewalTiming{.first_share = 0.8, .share = 0.5},
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"foreign-renewal", HazardOutcome::foreign_renewal}},
                            {kRenewed, kOneRedis, kKeyTtl}),
    .make = construct<WatchdogNaive>,
});

}  // namespace
}  // namespace lockbench::redis
