#include "strategies/redis/client/single_node.h"

#include <algorithm>

#include "strategies/endpoints.h"
#include "strategies/redis/client/answers.h"
#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {
namespace {

RenewResult renew_by(const RenewalProtocol& protocol, Connection& redis, Env& env,
                     const Lease& lease, Duration ttl) {
  const TimePoint asked_at = env.now();
  const std::string argument = protocol.argument(ttl);
  const auto renewed =
      protocol.script != nullptr
          ? redis.call(kFlag, *protocol.script, {lease.key}, {lease.token, argument})
          : redis.call(kFlag, {protocol.unchecked, lease.key, argument});
  return to_renew_result(renewed, lease, env, asked_at, protocol.granted(ttl));
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
      factory_(context.services.get_or_make<ConnectionFactory>(make_connection_factory)),
      redis_(factory_.make(endpoint_, options_.timeouts(), env_)) {}

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
      if (*freed) notify_released(lease, once.stop);
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
    if (undo(lease, request.stop).value_or(false)) notify_released(lease, request.stop);
  } else if (result.outcome != AcquireOutcome::refused) {
    withdraw(lease, request.stop);
  }
  return result;
}

ReleaseResult SingleNodeLock::release(const Lease& lease) {
  if (lease.renewal) lease.renewal->stop();
  ReleaseResult result = to_release_result(give_back(lease, {}));
  if (result.outcome == ReleaseOutcome::released) notify_released(lease, {});
  return result;
}

RenewResult SingleNodeLock::renew(const Lease& lease, Duration ttl) {
  const auto protocol = renewal_protocol();
  if (!protocol) return {RenewOutcome::unsupported, {}};
  return renew_by(*protocol, redis(), env(), lease, ttl);
}

void SingleNodeLock::notify_released(const Lease& lease, const std::stop_token& stop) {
  if (!notifies() || release_notifies()) return;
  (void)redis_->call({"PUBLISH", channel_of(lease.key), "released"}, stop);
}

WaitResult SingleNodeLock::wait_turn(const AcquireRequest& request, const Lease&,
                                     std::uint32_t earlier_waits, Duration longest) {
  if (notifies()) return wait_for_message(request, std::min(longest, request.ttl));
  const Duration delay = std::min(waiting_.delay(earlier_waits, env_), longest);
  return env_.wait(nullptr, env_.now() + delay, request.stop);
}

WaitResult SingleNodeLock::wait_for_message(const AcquireRequest& request, Duration longest) {
  // Without a subscription, poll.
  constexpr Duration kPollInterval = std::chrono::milliseconds(100);
  if (!woken_) woken_ = env_.make_event();
  if (!listening_) {
    auto& hub = services_.get_or_make<NotificationHub>([this] {
      return std::make_shared<NotificationHub>(endpoint_, options_.command_timeout, factory_,
                                               make_service_env(services_));
    });
    listening_.emplace(hub, channel_of(request.key), *woken_);
    // The lock may have been released between the attempt and the subscription.
    if (listening_->subscribed()) return WaitResult::signalled;
  }
  if (!listening_->subscribed()) longest = std::min(longest, kPollInterval);
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
  scheduler_ = &renewal_scheduler(services_);
  // An answer that comes after the lease's end is useless.
  using Milliseconds = std::chrono::milliseconds;  // whole ones: messages show it
  const Duration timeout =
      std::min<Duration>(std::max(std::chrono::floor<Milliseconds>(ttl / 3), Milliseconds(10)),
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
  const auto set = redis_->call(
      kOkOrNil, {"SET", lease.key, value, "NX", "PX", std::to_string(milliseconds)}, request.stop);
  if (!set) return tl::unexpected(set.error());
  if (!*set) return false;
  lease.state = valid_until(asked_at + std::chrono::milliseconds(milliseconds));
  return true;
}

StoreResult<bool> SingleNodeLock::set_nx(std::string_view key, std::string_view value,
                                         const std::stop_token& stop) {
  constexpr std::string_view kName = "SETNX";
  if (!options_.bounded_keys) return redis_->call(kFlag, {kName, key, value}, stop);
  const std::string_view words[] = {"SET", key, value, "NX", "EX", kKeptSeconds};
  redis_->queue(Command(words), kName);
  return redis_->read(kOkOrNil, kName, redis_->receive(stop));
}

StoreResult<std::optional<std::string>> SingleNodeLock::get_set(std::string_view key,
                                                                std::string_view value,
                                                                const std::stop_token& stop) {
  constexpr std::string_view kName = "GETSET";
  if (!options_.bounded_keys) return redis_->call(kTextOrNil, {kName, key, value}, stop);
  const std::string_view words[] = {"SET", key, value, "EX", kKeptSeconds, "GET"};
  redis_->queue(Command(words), kName);
  return redis_->read(kTextOrNil, kName, redis_->receive(stop));
}

std::optional<RenewalProtocol> TokenLock::renewal_protocol() const {
  return RenewalProtocol{.script = &scripts::renew_if_token};
}

StoreResult<bool> TokenLock::give_back(const Lease& lease, const std::stop_token& stop) {
  return redis().call(kFlag, scripts::release_if_token, {lease.key}, {lease.token}, stop);
}

StoreResult<bool> release_unchecked(Connection& redis, const Lease& lease,
                                    const std::stop_token& stop) {
  return redis.call(kFlag, {"DEL", lease.key}, stop);
}

RenewResult renew_unchecked(Connection& redis, Env& env, const Lease& lease, Duration ttl) {
  return renew_by({}, redis, env, lease, ttl);
}

}  // namespace lockbench::redis
