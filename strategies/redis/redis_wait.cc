#include "strategies/redis/client/answers.h"
#include "strategies/redis/client/replicas.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

/// SET NX PX, then WAIT until the replicas have it too, as article 004 considers. If too few
/// acknowledge in time, the lock is released and the acquisition refused.
class WaitForReplicas : public TokenLock {
 public:
  explicit WaitForReplicas(const Context& context) : TokenLock(context), replicas_(context, true) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (auto known = prepare(); !known) return tl::unexpected(known.error());
    auto taken = set_nx_px(request, lease, lease.token);
    if (!taken || !taken->granted) return taken;
    const StoreResult<void> kept = await_replicas(request.stop);
    if (kept) return taken;
    // After a lost answer acquire() releases the lock.
    if (kept.error().kind == StoreError::Kind::unanswered) return tl::unexpected(kept.error());
    const auto freed = give_back(lease, request.stop);
    if (freed) return tl::unexpected(kept.error());
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }

  /// Counts only once the replicas have the new TTL.
  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env().now();
    const auto milliseconds = ceil_milliseconds(ttl);
    const auto renewed = redis().call(kFlag, scripts::renew_if_token, {lease.key},
                                      {lease.token, std::to_string(milliseconds)});
    if (renewed && *renewed) {
      if (auto kept = await_replicas({}); !kept)
        return {RenewOutcome::failed, kept.error().message};
    }
    return to_renew_result(renewed, lease, env(), asked_at,
                           std::chrono::milliseconds(milliseconds));
  }

 protected:
  StoreResult<void> prepare() override { return replicas_.check(endpoint()); }

  // The timer's renewals would not wait for the replicas.
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }

 private:
  /// Waits until the replicas have this connection's writes. Fails as `refused` with too few.
  StoreResult<void> await_replicas(const std::stop_token& stop) {
    const auto connection = redis().times_connected();
    replicas_.queue(redis());
    const auto acknowledged = replicas_.receive(redis(), stop);
    if (!acknowledged) return tl::unexpected(acknowledged.error());
    // On a new connection without writes, WAIT would count every replica.
    if (redis().times_connected() != connection) {
      return tl::unexpected(StoreError{StoreError::Kind::unanswered,
                                       endpoint() + ": the connection was lost before WAIT"});
    }
    if (*acknowledged >= replicas_.wait().needed) return {};
    return tl::unexpected(replicas_.wait().too_few(endpoint(), *acknowledged));
  }

  Replicas replicas_;
};

const Registration redis_wait(with_known_hazards({
    .name = "redis-wait",
    .backend = "redis",
    .summary = "SET NX PX, then WAIT for the replicas; released and refused if too few acknowledge "
               "in time",
    .acquire_commands = {"SET key token NX PX ttl", "WAIT replicas timeout"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "redis.io \"WAIT\"",
    .typical = true,
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .needs_replicas = true,
               .waiting_choices = kWaitingChoices},
    .make = construct<WaitForReplicas>,
}));

}  // namespace
}  // namespace lockbench::redis
