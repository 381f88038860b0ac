#include <fmt/format.h>

#include <algorithm>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "strategies/replication_observer.h"

namespace lockbench::redis {
namespace {

/// A failover breaks the lock only if fewer than all replicas had to acknowledge it, and one that
/// did not takes over.
constexpr KnownHazard kFailover[] = {{"failover-wrong-replica", HazardOutcome::double_grant},
                                     {"failover", HazardOutcome::refused}};

/// SET NX PX, then WAIT until the replicas have it too, as article 004 considers. If too few
/// acknowledge in time, the lock is released and the acquisition refused.
class WaitForReplicas : public TokenLock {
 public:
  explicit WaitForReplicas(const Context& context)
      : TokenLock(context),
        asked_for_(context.options.wait_replicas),
        timeout_(context.options.wait_timeout),
        command_timeout_(context.options.command_timeout),
        observer_(context.services.get<ReplicationObserver>()) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (auto known = prepare(); !known) return tl::unexpected(known.error());
    auto taken = set_nx_px(request, lease, lease.token);
    if (!taken || !taken->granted) return taken;
    const StoreResult<void> kept = await_replicas(request.stop);
    if (kept) return taken;
    // After a lost answer acquire() releases the lock.
    if (kept.error().kind == StoreError::Kind::unanswered) return tl::unexpected(kept.error());
    const auto freed = redis().call(scripts::release_if_token, {lease.key}, {lease.token});
    if (freed) return tl::unexpected(kept.error());
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }

  /// Counts only once the replicas have the new TTL.
  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env().now();
    const auto milliseconds = ceil_milliseconds(ttl);
    const auto renewed = redis().call(scripts::renew_if_token, {lease.key},
                                      {lease.token, std::to_string(milliseconds)});
    if (renewed && renewed->is_integer(1)) {
      if (auto kept = await_replicas({}); !kept)
        return {RenewOutcome::failed, kept.error().message};
    }
    return to_renew_result(is_one(renewed), lease, env(), asked_at,
                           std::chrono::milliseconds(milliseconds));
  }

 protected:
  /// Sets how many replicas must acknowledge: the user's number, or else all that the server has.
  StoreResult<void> prepare() override {
    if (wanted_ > 0) return {};
    if (asked_for_) {
      wanted_ = *asked_for_;
      return {};
    }
    const auto there = connected_replicas(redis());
    if (!there) return tl::unexpected(there.error());
    if (*there == 0) {
      return tl::unexpected(
          StoreError{StoreError::Kind::rejected, endpoint() + ": the server has no replicas"});
    }
    wanted_ = *there;
    return {};
  }

  // The timer's renewals would not wait for the replicas.
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }

 private:
  /// Waits until enough replicas have this connection's writes. Fails as `refused` with too few.
  StoreResult<void> await_replicas(const std::stop_token& stop) {
    const auto connection = redis().times_connected();
    const TimePoint asked_at = env().now();
    const std::string wanted = std::to_string(wanted_);
    const std::string milliseconds =
        std::to_string(std::max<std::int64_t>(1, ceil_milliseconds(timeout_)));
    const std::string_view words[] = {"WAIT", wanted, milliseconds};
    redis().queue(Command(words));
    redis().flush(stop);
    // Not reported as a wait for the lock. May take the command timeout in addition to its own.
    auto answer = redis().receive_within(timeout_ + command_timeout_, stop);
    if (!answer) {
      redis().close();
      answer = redis().receive(stop);
    }
    if (!*answer) return tl::unexpected(answer->error());
    // On a new connection without writes, WAIT would count every replica.
    if (redis().times_connected() != connection) {
      return tl::unexpected(StoreError{StoreError::Kind::unanswered,
                                       endpoint() + ": the connection was lost before WAIT"});
    }
    const auto acknowledged = static_cast<int>((*answer)->integer);
    observer_.on_acknowledged(env().now() - asked_at, acknowledged, wanted_);
    if (acknowledged >= wanted_) return {};
    return tl::unexpected(
        StoreError{StoreError::Kind::refused,
                   fmt::format("{}: {} of {} replicas acknowledged within {}", endpoint(),
                               acknowledged, wanted_, format_duration(timeout_))});
  }

  const std::optional<int> asked_for_;
  const Duration timeout_, command_timeout_;
  ReplicationObserver& observer_;
  int wanted_ = 0;  ///< 0: not known yet
};

const Registration registration(Descriptor{
    .name = "redis-wait",
    .backend = "redis",
    .summary = "SET NX PX, then WAIT for the replicas; released and refused if too few acknowledge "
               "in time",
    .acquire_commands = {"SET key token NX PX ttl", "WAIT replicas timeout"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "article 004; redis.io \"WAIT\"",
    .typical = true,
    .libraries = {{"Java", "Redisson with replicas",
                   "checkLockSyncedSlaves, slavesSyncTimeout, lease time = {ttl}"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .needs_replicas = true,
               .waiting_choices = kWaitingChoices},
    .hazards = join_hazards(join_hazards({}, {kOverrun, kOneRedis, kKeyTtl},
                                         {"failover", "failover-sentinel"}),
                            {kFailover}),
    .make = construct<WaitForReplicas>,
});

}  // namespace
}  // namespace lockbench::redis
