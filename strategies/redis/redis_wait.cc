#include <fmt/format.h>

#include <algorithm>

#include "strategies/redis/client/info.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "strategies/replication_observer.h"

namespace lockbench::redis {
namespace {

/// As long as all replicas are asked; those of fewer may not be the one that takes over.
std::vector<KnownHazard> failover_refused(std::vector<KnownHazard> hazards) {
  hazards = without_hazards(std::move(hazards), {"failover", "failover-sentinel"});
  hazards.push_back({"failover-wrong-replica", HazardOutcome::double_grant});
  hazards.push_back({"failover", HazardOutcome::refused});
  return hazards;
}

/// SET NX PX, and WAIT until replicas have it too: what article 004 wonders about. Too few of them
/// in time: the lock is given back, and refused.
class WaitForReplicas : public TokenLock {
 public:
  explicit WaitForReplicas(const Context& context)
      : TokenLock(context),
        asked_for_(context.options.wait_replicas),
        timeout_(context.options.wait_timeout),
        command_timeout_(context.options.command_timeout),
        observer_(
            context.services.get_or_make<ReplicationObserver>(make_deaf_replication_observer)) {}

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (auto known = prepare(); !known) return tl::unexpected(known.error());
    auto taken = set_nx_px(request, lease, lease.token);
    if (!taken || !taken->granted) return taken;
    const StoreResult<void> kept = await_replicas(request.stop);
    if (kept) return taken;
    // After a lost answer it is given back by whoever asked for it.
    if (kept.error().kind == StoreError::Kind::unanswered) return tl::unexpected(kept.error());
    const auto freed = redis().call(scripts::release_if_token, {lease.key}, {lease.token});
    if (freed) return tl::unexpected(kept.error());
    return tl::unexpected(StoreError{StoreError::Kind::unanswered, freed.error().message});
  }

  /// The TTL that replicas do not know of yet is not counted on.
  RenewResult renew(const Lease& lease, Duration ttl) override {
    const TimePoint asked_at = env().now();
    const auto milliseconds = ceil_milliseconds(ttl);
    const auto renewed = redis().call(scripts::renew_if_token, {lease.key},
                                      {lease.token, std::to_string(milliseconds)});
    if (renewed && renewed->is_integer(1)) {
      if (auto kept = await_replicas({}); !kept)
        return {RenewOutcome::failed, kept.error().message};
    }
    return to_renew_result(renewed, lease, env(), asked_at,
                           std::chrono::milliseconds(milliseconds));
  }

 protected:
  /// How many must acknowledge: the server is asked once, unless the user says.
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
          StoreError{StoreError::Kind::rejected, endpoint() + ": it has no replicas"});
    }
    wanted_ = *there;
    return {};
  }

  // A timer's renewal would not wait for the replicas.
  std::optional<RenewalProtocol> renewal_protocol() const override { return std::nullopt; }

 private:
  /// Whether enough replicas have what this connection wrote. Refused: too few.
  StoreResult<void> await_replicas(const std::stop_token& stop) {
    const auto connection = redis().times_connected();
    const TimePoint asked_at = env().now();
    const std::string wanted = std::to_string(wanted_);
    const std::string milliseconds =
        std::to_string(std::max<std::int64_t>(1, ceil_milliseconds(timeout_)));
    const std::string_view words[] = {"WAIT", wanted, milliseconds};
    redis().queue(Command(words));
    redis().flush(stop);
    // Not a wait for the lock: it takes as long as a command may, and its own time.
    auto answer = redis().receive_within(timeout_ + command_timeout_, stop);
    if (!answer) {
      redis().close();
      answer = redis().receive(stop);
    }
    if (!*answer) return tl::unexpected(answer->error());
    // On a connection that has written nothing, every replica has it all.
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
  int wanted_ = 0;  ///< not known yet
};

const Registration registration(Descriptor{
    .name = "redis-wait",
    .backend = "redis",
    .summary = "SET NX PX, then WAIT until replicas have the lock; too few in time: given back",
    .acquire_commands = {"SET key token NX PX ttl", "WAIT replicas timeout"},
    .release_commands = {"EVALSHA release_if_token key token"},
    .source = "article 004; redis.io \"WAIT\"",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .needs_replicas = true,
               .waiting_choices = kWaitingChoices},
    .hazards = failover_refused(with_ttl_hazards({})),
    .make = construct<WaitForReplicas>,
});

}  // namespace
}  // namespace lockbench::redis
