#include "strategies/redis/single_node.h"

#include <algorithm>
#include <stdexcept>

#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {
namespace {

Endpoint first_endpoint(const Context& context) {
  const auto urls = context.endpoints.find("redis");
  if (urls == context.endpoints.end() || urls->second.empty()) {
    throw std::invalid_argument("no Redis endpoint was given");
  }
  auto endpoint = parse_endpoint(urls->second.front());
  if (!endpoint) throw std::invalid_argument(endpoint.error());
  return *std::move(endpoint);
}

void append_missing(std::vector<KnownHazard>& hazards, std::initializer_list<KnownHazard> more) {
  for (const KnownHazard& hazard : more) {
    const bool there = std::any_of(hazards.begin(), hazards.end(), [&](const KnownHazard& own) {
      return own.scenario == hazard.scenario;
    });
    if (!there) hazards.push_back(hazard);
  }
}

}  // namespace

SingleNodeLock::SingleNodeLock(const Context& context)
    : env_(context.env),
      waiting_(context.waiting),
      client_(context.client),
      redis_(context.services.get_or_make<ConnectionFactory>(make_hiredis_factory)
                 .make(first_endpoint(context), context.options.command_timeout, env_)) {}

AcquireResult SingleNodeLock::acquire(const AcquireRequest& request) {
  Lease lease{.key = std::string(request.key), .token = make_token()};
  AcquireResult result = retry(request, env_, waiting_, [&](const AcquireRequest& once) -> Attempt {
    const StoreResult<bool> granted = try_acquire(once, lease);
    if (!granted) return tl::unexpected(granted.error());
    if (!*granted) return std::nullopt;
    return std::optional(std::move(lease));
  });
  if (result.outcome == AcquireOutcome::unknown) undo(lease, request.stop);
  return result;
}

StoreResult<bool> SingleNodeLock::set_nx_px(const AcquireRequest& request, Lease& lease,
                                            std::string_view value) {
  const auto milliseconds = ceil_milliseconds(request.ttl);
  const TimePoint asked_at = env_.now();
  const auto reply = redis_->call(
      {"SET", lease.key, value, "NX", "PX", std::to_string(milliseconds)}, request.stop);
  if (!reply) return tl::unexpected(reply.error());
  if (!reply->is_text("OK")) return false;
  lease.state = valid_until(asked_at + std::chrono::milliseconds(milliseconds));
  return true;
}

ReleaseResult TokenLock::release(const Lease& lease) {
  return to_release_result(redis().call(scripts::release_if_token, {lease.key}, {lease.token}));
}

void TokenLock::undo(const Lease& lease, const std::stop_token& stop) {
  (void)redis().call(scripts::release_if_token, {lease.key}, {lease.token}, stop);
}

RenewResult TokenLock::renew(const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env().now();
  const auto milliseconds = ceil_milliseconds(ttl);
  return to_renew_result(redis().call(scripts::renew_if_token, {lease.key},
                                      {lease.token, std::to_string(milliseconds)}),
                         lease, env(), asked_at, std::chrono::milliseconds(milliseconds));
}

ReleaseResult release_unchecked(Connection& redis, const Lease& lease,
                                const std::stop_token& stop) {
  return to_release_result(redis.call({"DEL", lease.key}, stop));
}

RenewResult renew_unchecked(Connection& redis, Env& env, const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env.now();
  const auto milliseconds = ceil_milliseconds(ttl);
  return to_renew_result(redis.call({"PEXPIRE", lease.key, std::to_string(milliseconds)}), lease,
                         env, asked_at, std::chrono::milliseconds(milliseconds));
}

ReleaseResult to_release_result(const StoreResult<Reply>& reply) {
  if (!reply) return {ReleaseOutcome::failed, reply.error().message};
  return {reply->is_integer(1) ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
}

RenewResult to_renew_result(const StoreResult<Reply>& reply, const Lease& lease, Env& env,
                            TimePoint asked_at, Duration granted) {
  if (!reply) return {RenewOutcome::failed, reply.error().message};
  if (!reply->is_integer(1)) {
    lease.state->mark_lost(env.now());
    return {RenewOutcome::not_owner, {}};
  }
  lease.state->extend(asked_at + granted);
  return {RenewOutcome::renewed, {}};
}

std::vector<KnownHazard> with_one_redis_hazards(std::vector<KnownHazard> own) {
  append_missing(own, {{"failover", HazardOutcome::double_grant},
                       {"store-restart-empty", HazardOutcome::double_grant},
                       {"rogue-delete", HazardOutcome::double_grant},
                       {"reentry", HazardOutcome::self_deadlock}});
  return own;
}

std::vector<KnownHazard> with_overrun_hazards(std::vector<KnownHazard> own) {
  append_missing(own, {{"overrun-holding", HazardOutcome::double_grant},
                       {"pause-holding", HazardOutcome::lost_update},
                       {"pause-holding-fenced", HazardOutcome::lost_update},
                       {"partition-holder", HazardOutcome::double_grant}});
  return with_one_redis_hazards(std::move(own));
}

std::vector<KnownHazard> with_ttl_hazards(std::vector<KnownHazard> own) {
  own = with_overrun_hazards(std::move(own));
  append_missing(own, {{"store-clock-jump", HazardOutcome::double_grant},
                       {"redis-eviction", HazardOutcome::double_grant}});
  return own;
}

std::vector<KnownHazard> with_unchecked_release(std::vector<KnownHazard> own) {
  append_missing(own, {{"release-without-holding", HazardOutcome::foreign_release},
                       {"lost-answer-acquire", HazardOutcome::stuck},
                       {"lost-answer-release", HazardOutcome::foreign_release}});
  return own;
}

}  // namespace lockbench::redis
