#include "strategies/redis/client/answers.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SETNX, and if that succeeded EXPIRE: a client that dies between the two leaves a lock without
/// TTL.
class SetnxExpire : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto set = set_nx(lease.key, "1", request.stop);
    if (!set) return tl::unexpected(set.error());
    if (!*set) return false;

    const auto seconds = ceil_seconds(request.ttl);
    const TimePoint asked_at = env().now();
    auto expires =
        redis().call(kFlag, {"EXPIRE", lease.key, std::to_string(seconds)}, request.stop);
    if (!expires) {
      // The lock is held, perhaps without a TTL.
      expires.error().kind = StoreError::Kind::unanswered;
      return tl::unexpected(expires.error());
    }
    if (!*expires) return false;  // the key is gone already
    lease.state = valid_until(asked_at + std::chrono::seconds(seconds));
    return true;
  }
};

const Registration redis_setnx_expire(Descriptor{
    .name = "redis-setnx-expire",
    .backend = "redis",
    .summary =
        "SETNX, then EXPIRE as a second step (whole seconds): a crash in between blocks for ever",
    .acquire_commands = {"SETNX key 1", "EXPIRE key seconds"},
    .release_commands = {"DEL key"},
    .source = "common practice",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "SET NX PX does both in one command since Redis 2.6.12",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .ttl_in_seconds = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards({{"crash-mid-acquire", HazardOutcome::stuck}},
                            {kUncheckedOverrun, kUncheckedRelease, kOverrun, kOneRedis, kKeyTtl}),
    .make = construct<SetnxExpire>,
});

}  // namespace
}  // namespace lockbench::redis
