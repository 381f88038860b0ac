#include "strategies/memcached/lock.h"

#include "strategies/endpoints.h"
#include "strategies/memcached/client/item_ttl.h"
#include "strategies/waiting/retry.h"

namespace lockbench::memcached {

AddLock::AddLock(const Context& context)
    : env_(context.env),
      waiting_(context.waiting),
      memcached_(endpoints_of(context, parse_endpoint).front(), context.options.command_timeout,
                 context.env) {}

AcquireResult AddLock::acquire(const AcquireRequest& request) {
  Lease lease{.key = std::string(request.key), .token = random_token(env_)};
  AcquireResult result = retry(request, env_, waiting_, [&](const AcquireRequest& once) -> Attempt {
    const StoreResult<bool> granted = add(once, lease);
    if (!granted) return tl::unexpected(granted.error());
    if (!*granted) return std::nullopt;
    if (env_.now() >= lease.state->valid_until()) {
      // Granted too late to be of use. If it cannot be taken back, it may stay for a while yet.
      if (auto back = take_back(lease, once.stop); !back) {
        back.error().kind = StoreError::Kind::unanswered;
        return tl::unexpected(std::move(back.error()));
      }
      return std::nullopt;
    }
    return std::optional(std::move(lease));
  });
  if (result.outcome == AcquireOutcome::unknown) (void)take_back(lease, request.stop);
  return result;
}

StoreResult<bool> AddLock::add(const AcquireRequest& request, Lease& lease) {
  const auto expiry = ItemTtl::of(request.ttl);
  if (!expiry) return tl::unexpected(expiry.error());
  const TimePoint asked_at = env_.now();
  auto added = memcached_.add(lease.key, lease.token, expiry->asked, request.stop);
  if (added && *added)
    lease.state = std::make_shared<LeaseState>(asked_at + expiry->kept, asked_at);
  return added;
}

ReleaseResult to_release_result(const StoreResult<bool>& changed) {
  if (!changed) return {ReleaseOutcome::failed, changed.error().message};
  return {*changed ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
}

RenewResult to_renew_result(const StoreResult<bool>& changed, const Lease& lease, Env& env,
                            TimePoint asked_at, Duration kept) {
  if (!changed) return {RenewOutcome::failed, changed.error().message};
  if (!*changed) {
    lease.state->mark_lost(env.now());
    return {RenewOutcome::not_owner, {}};
  }
  lease.state->extend(asked_at + kept, asked_at);
  return {RenewOutcome::renewed, {}};
}

std::vector<KnownHazard> with_memcached_hazards(std::vector<KnownHazard> own) {
  own.insert(own.end(), {{"overrun-holding", HazardOutcome::double_grant},
                         {"pause-holding", HazardOutcome::lost_update},
                         {"pause-holding-fenced", HazardOutcome::lost_update},
                         {"partition-holder", HazardOutcome::double_grant},
                         {"store-restart-empty", HazardOutcome::double_grant},
                         {"memcached-eviction", HazardOutcome::double_grant},
                         {"rogue-delete", HazardOutcome::double_grant},
                         {"reentry", HazardOutcome::self_deadlock}});
  return own;
}

}  // namespace lockbench::memcached
