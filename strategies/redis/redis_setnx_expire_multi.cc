#include <array>

#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SETNX and EXPIRE in one transaction. EXPIRE runs even if SETNX was refused, so every refused
/// client extends the holder's TTL.
class SetnxExpireMulti : public UncheckedLock {
 public:
  using UncheckedLock::UncheckedLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto seconds = ceil_seconds(request.ttl);
    const TimePoint asked_at = env().now();
    redis().queue({"MULTI"});
    redis().queue({"SETNX", lease.key, "1"});
    redis().queue({"EXPIRE", lease.key, std::to_string(seconds)});
    redis().queue({"EXEC"});
    std::array<StoreResult<Reply>, 4> replies;
    for (auto& reply : replies) reply = redis().receive(request.stop);

    if (!replies[0] && replies[0].error().kind == StoreError::Kind::rejected) {
      // The other commands ran without a transaction: the state is unknown.
      return tl::unexpected(StoreError{StoreError::Kind::unanswered, replies[0].error().message});
    }
    const StoreResult<Reply>& done = replies.back();
    if (!done) return tl::unexpected(done.error());
    if (done->elements.empty() || !done->elements[0].is_integer(1)) return false;
    lease.state = valid_until(asked_at + std::chrono::seconds(seconds));
    return true;
  }
};

const Registration registration(Descriptor{
    .name = "redis-setnx-expire-multi",
    .backend = "redis",
    .summary = "SETNX and EXPIRE in MULTI (whole seconds): refused clients extend the holder's TTL",
    .acquire_commands = {"MULTI", "SETNX key 1", "EXPIRE key seconds", "EXEC"},
    .release_commands = {"DEL key"},
    .source = "article 001",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "SET NX PX does both in one command since Redis 2.6.12",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .prolonged_by_contenders = true,
               .ttl_in_seconds = true,
               .renewable = true,
               .waiting_choices = kWaitingChoices},
    // Refused clients that keep asking keep extending the TTL: a crash blocks for ever, and no
    // overrun happens.
    .hazards = join_hazards({{"crash-holding", HazardOutcome::stuck},
                             {"crash-mid-acquire", HazardOutcome::stuck},
                             {"host-crash", HazardOutcome::stuck},
                             {"runaway-holder", HazardOutcome::stuck}},
                            {kUncheckedOverrun, kUncheckedRelease, kOverrun, kOneRedis, kKeyTtl}),
    .make = construct<SetnxExpireMulti>,
});

}  // namespace
}  // namespace lockbench::redis
