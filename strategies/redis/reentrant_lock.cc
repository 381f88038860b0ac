#include "strategies/redis/reentrant_lock.h"

#include "strategies/redis/scripts.h"

namespace lockbench::redis {

StoreResult<TryResult> ReentrantLock::try_acquire(const AcquireRequest& request, Lease& lease) {
  const auto milliseconds = ceil_milliseconds(request.ttl);
  latest_ttl_ = request.ttl;
  const TimePoint asked_at = env().now();
  const auto left = redis().call(scripts::reentrant_acquire, {lease.key},
                                 {lease.token, std::to_string(milliseconds)}, request.stop);
  if (!left) return tl::unexpected(left.error());
  if (!left->is_nil()) {
    // Without a TTL, which nobody of ours leaves behind, it does not free itself.
    if (left->integer < 0) return false;
    return TryResult(false, std::chrono::milliseconds(left->integer));
  }
  Held& held = held_[lease.key];
  ++held.count;
  held.ttl = request.ttl;
  lease.state = valid_until(asked_at + std::chrono::milliseconds(milliseconds));
  return true;
}

StoreResult<Reply> ReentrantLock::release_once(const Lease& lease, Duration ttl,
                                               const std::stop_token& stop) {
  const std::string milliseconds = std::to_string(ceil_milliseconds(ttl));
  if (!notifies()) {
    return redis().call(scripts::reentrant_release, {lease.key}, {lease.token, milliseconds}, stop);
  }
  return redis().call(scripts::reentrant_release, {lease.key},
                      {lease.token, milliseconds, channel_of(lease.key)}, stop);
}

ReleaseResult ReentrantLock::give_back(const Lease& lease) {
  const auto held = held_.find(lease.key);
  const Duration ttl = held == held_.end() ? latest_ttl_ : held->second.ttl;
  if (held != held_.end() && --held->second.count == 0) held_.erase(held);
  const auto reply = release_once(lease, ttl, {});
  if (!reply) return {ReleaseOutcome::failed, reply.error().message};
  return {reply->is_nil() ? ReleaseOutcome::not_owner : ReleaseOutcome::released, {}};
}

bool ReentrantLock::undo(const Lease& lease, const std::stop_token& stop) {
  // Whether it was counted once more cannot be told if it was held already.
  if (held_.contains(lease.key)) return false;
  const auto freed = release_once(lease, latest_ttl_, stop);
  return freed && freed->is_integer(1);
}

std::optional<RenewalProtocol> ReentrantLock::renewal_protocol() const {
  return RenewalProtocol{.script = &scripts::reentrant_renew};
}

RenewResult ReentrantLock::renew(const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env().now();
  const auto milliseconds = ceil_milliseconds(ttl);
  return to_renew_result(redis().call(scripts::reentrant_renew, {lease.key},
                                      {lease.token, std::to_string(milliseconds)}),
                         lease, env(), asked_at, std::chrono::milliseconds(milliseconds));
}

}  // namespace lockbench::redis
