#include "strategies/redis/client/single_node.h"

#include <algorithm>

#include "strategies/endpoints.h"
#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {
namespace {

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
      services_(context.services),
      options_(context.options),
      endpoint_(endpoints_of(context, parse_endpoint).front()),
      waiting_(context.waiting),
      renewing_(context.renewing),
      client_(context.client),
      factory_(context.services.get_or_make<ConnectionFactory>(make_hiredis_factory)),
      redis_(factory_.make(endpoint_, options_.command_timeout, env_)) {}

AcquireResult SingleNodeLock::acquire(const AcquireRequest& request) {
  Lease lease{.key = std::string(request.key), .token = make_token()};
  TimePoint asked_at{};
  Duration frees_itself_in = Duration::max();
  const auto try_once = [&](const AcquireRequest& once) -> Attempt {
    asked_at = env_.now();
    const StoreResult<TryResult> tried = try_acquire(once, lease);
    if (!tried) return tl::unexpected(tried.error());
    frees_itself_in = tried->frees_itself_in;
    if (!tried->granted) {
      if (listening_) listening_->found_taken();
      return std::nullopt;
    }
    if (env_.now() >= lease.state->valid_until()) {
      auto freed = decline(lease, once.stop);
      if (!freed) {
        freed.error().kind = StoreError::Kind::unanswered;  // it may be held
        return tl::unexpected(std::move(freed.error()));
      }
      if (*freed) tell_released(lease, once.stop);
      return std::nullopt;
    }
    return std::optional(std::move(lease));
  };
  const auto wait = [&](std::uint32_t earlier_waits, Duration left) {
    return wait_turn(request, lease, earlier_waits, std::min(left, frees_itself_in));
  };
  AcquireResult result = retry_after(wait, request, env_, try_once);
  if (listening_ && result.lease) listening_->satisfied();
  listening_.reset();
  if (result.lease) {
    keep_renewed(*result.lease, asked_at, request.ttl);
  } else if (result.outcome == AcquireOutcome::unknown) {
    if (undo(lease, request.stop).value_or(false)) tell_released(lease, request.stop);
  } else if (result.outcome != AcquireOutcome::refused) {
    withdraw(lease, request.stop);
  }
  return result;
}

ReleaseResult SingleNodeLock::release(const Lease& lease) {
  if (lease.renewal) lease.renewal->stop();
  ReleaseResult result = give_back(lease);
  if (result.outcome == ReleaseOutcome::released) tell_released(lease, {});
  return result;
}

void SingleNodeLock::tell_released(const Lease& lease, const std::stop_token& stop) {
  if (!notifies() || tells_itself()) return;
  (void)redis_->call({"PUBLISH", channel_of(lease.key), "released"}, stop);
}

WaitResult SingleNodeLock::wait_turn(const AcquireRequest& request, const Lease&,
                                     std::uint32_t earlier_waits, Duration longest) {
  if (notifies()) return wait_for_message(request, std::min(longest, request.ttl));
  const Duration delay = std::min(waiting_.delay(earlier_waits, env_), longest);
  return env_.wait(nullptr, env_.now() + delay, request.stop);
}

WaitResult SingleNodeLock::wait_for_message(const AcquireRequest& request, Duration longest) {
  // While nothing can be heard, for want of a connection, it is asked as the polling do.
  constexpr Duration kDeaf = std::chrono::milliseconds(100);
  if (!woken_) woken_ = env_.make_event();
  if (!listening_) {
    auto& hub = services_.get_or_make<NotificationHub>([this] {
      auto& worlds = services_.get_or_make<EnvSource>(system_env_source);
      return std::make_shared<NotificationHub>(endpoint_, options_.command_timeout, factory_,
                                               worlds.make());
    });
    listening_.emplace(hub, channel_of(request.key), *woken_);
    // It may have been released after the attempt, before anybody listened.
    if (listening_->hears()) return WaitResult::signalled;
  }
  if (!listening_->hears()) longest = std::min(longest, kDeaf);
  const WaitResult result = env_.wait(woken_.get(), env_.now() + longest, request.stop);
  listening_->woken();
  return result;
}

void SingleNodeLock::keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl) {
  lease.state->extend(lease.state->valid_until(), granted_at);
  if (!renewing_) return;
  if (scheduler_ == nullptr && !find_scheduler(ttl)) return;
  lease.renewal = scheduler_->keep({.key = lease.key,
                                    .token = lease.token,
                                    .state = lease.state,
                                    .granted_at = granted_at,
                                    .ttl = ttl,
                                    .timing = *renewing_,
                                    .cap = options_.renew_cap,
                                    .channels = {renewal_channel_}});
}

bool SingleNodeLock::find_scheduler(Duration ttl) {
  const auto protocol = renewal_protocol();
  if (!protocol) return false;
  scheduler_ = &services_.get_or_make<RenewalScheduler>([this] {
    auto& worlds = services_.get_or_make<EnvSource>(system_env_source);
    auto& observer = services_.get_or_make<RenewalObserver>(make_deaf_observer);
    return std::make_shared<RenewalScheduler>(worlds.make(), observer);
  });
  // An answer that comes after the lease's end is of no use.
  const Duration timeout = std::min(std::max(ttl / 3, Duration(std::chrono::milliseconds(10))),
                                    options_.command_timeout);
  renewal_channel_ = endpoint_.display() + " " + std::string(protocol->name());
  scheduler_->provide_channel(renewal_channel_, [&](Env& env) {
    return make_renewal_channel(factory_.make(endpoint_, timeout, env), *protocol);
  });
  return true;
}

StoreResult<TryResult> SingleNodeLock::set_nx_px(const AcquireRequest& request, Lease& lease,
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

std::optional<RenewalProtocol> TokenLock::renewal_protocol() const {
  return RenewalProtocol{.script = &scripts::renew_if_token};
}

ReleaseResult TokenLock::give_back(const Lease& lease) {
  return to_release_result(redis().call(scripts::release_if_token, {lease.key}, {lease.token}));
}

StoreResult<bool> TokenLock::undo(const Lease& lease, const std::stop_token& stop) {
  return freed_by(
      to_release_result(redis().call(scripts::release_if_token, {lease.key}, {lease.token}, stop)));
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

StoreResult<bool> freed_by(ReleaseResult&& release) {
  if (release.outcome != ReleaseOutcome::failed) {
    return release.outcome == ReleaseOutcome::released;
  }
  return tl::unexpected(StoreError{StoreError::Kind::unanswered, std::move(release.reason)});
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
  lease.state->extend(asked_at + granted, asked_at);
  return {RenewOutcome::renewed, {}};
}

std::vector<KnownHazard> with_one_redis_hazards(std::vector<KnownHazard> own) {
  append_missing(own, {{"failover", HazardOutcome::double_grant},
                       {"failover-sentinel", HazardOutcome::double_grant},
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

std::vector<KnownHazard> with_renewal_hazards(std::vector<KnownHazard> own) {
  append_missing(own, {{"pause-holding", HazardOutcome::lost_update},
                       {"runaway-holder", HazardOutcome::stuck},
                       {"pause-holding-fenced", HazardOutcome::lost_update},
                       {"partition-holder", HazardOutcome::double_grant}});
  own = with_one_redis_hazards(std::move(own));
  append_missing(own, {{"store-clock-jump", HazardOutcome::double_grant},
                       {"redis-eviction", HazardOutcome::double_grant}});
  return own;
}

std::vector<KnownHazard> without_hazards(std::vector<KnownHazard> list,
                                         std::initializer_list<std::string_view> withstood) {
  std::erase_if(list, [&](const KnownHazard& hazard) {
    return std::find(withstood.begin(), withstood.end(), hazard.scenario) != withstood.end();
  });
  return list;
}

std::vector<KnownHazard> with_unchecked_release(std::vector<KnownHazard> own) {
  append_missing(own, {{"release-without-holding", HazardOutcome::foreign_release},
                       {"lost-answer-acquire", HazardOutcome::stuck},
                       {"lost-answer-release", HazardOutcome::foreign_release}});
  return own;
}

std::vector<KnownHazard> with_unchecked_overrun(std::vector<KnownHazard> own) {
  append_missing(own, {{"late-release", HazardOutcome::foreign_release},
                       {"release-race", HazardOutcome::foreign_release},
                       {"foreign-renewal", HazardOutcome::foreign_renewal}});
  return with_unchecked_release(std::move(own));
}

}  // namespace lockbench::redis
