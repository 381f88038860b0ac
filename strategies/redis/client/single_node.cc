#include "strategies/redis/client/single_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "strategies/redis/scripts.h"

namespace lockbench::redis {
namespace {

std::optional<ReplicaWait> wait_of(const StrategyOptions& options,
                                   SingleNodeLock::Replicas needed) {
  if (needed == SingleNodeLock::Replicas::none) return std::nullopt;
  const int replicas = options.wait_replicas.value_or(0);
  return ReplicaWait{
      .replicas = replicas,
      .needed = needed == SingleNodeLock::Replicas::all ? replicas : std::min(replicas, 1),
      .within = options.wait_timeout};
}

class RedisRenewals : public RenewalChannel {
 public:
  RedisRenewals(std::unique_ptr<Connection> connection, const RenewalProtocol& protocol,
                std::optional<ReplicaWait> wait)
      : connection_(std::move(connection)), protocol_(protocol), wait_(wait) {}

  void queue(std::string_view key, std::string_view token, Duration ttl) override {
    const bool first = queued_++ == 0;
    const std::string argument = protocol_.argument(ttl);
    if (protocol_.script == nullptr) {
      return connection_->queue({protocol_.unchecked, key, argument});
    }
    // The first of a batch carries the script's source, so that the others find it even after a
    // restart of the server: a pipelined command cannot be repeated after NOSCRIPT. In a cluster
    // each does, as any of them may be redirected.
    const bool in_full = first || connection_->server_of(key).has_value();
    connection_->queue(*protocol_.script, in_full, {key}, {token, argument});
  }

  void flush(const std::stop_token& stop) override {
    if (wait_) wait_->queue(*connection_);
    connection_->flush(stop);
    sent_ = std::exchange(queued_, 0);
  }

  RenewalAnswer answer(const std::stop_token& stop) override {
    if (!wait_) return next_answer(stop);
    if (answers_.empty()) receive_batch(stop);
    const RenewalAnswer first = answers_.front();
    answers_.pop_front();
    return first;
  }

  std::string failure() const override { return failure_; }

 private:
  RenewalAnswer next_answer(const std::stop_token& stop) {
    const auto renewed = connection_->read(kFlag, protocol_.name(), connection_->receive(stop));
    if (renewed) return *renewed ? RenewalAnswer::renewed : RenewalAnswer::not_owner;
    failure_ = renewed.error().message;
    return RenewalAnswer::failed;
  }

  /// Receives all answers of a batch, and whether the replicas have it.
  void receive_batch(const std::stop_token& stop) {
    for (; sent_ > 0; --sent_) answers_.push_back(next_answer(stop));
    const auto kept = wait_->receive(*connection_, stop);
    if (kept) return;
    failure_ = kept.error().message;
    std::replace(answers_.begin(), answers_.end(), RenewalAnswer::renewed, RenewalAnswer::failed);
  }

  std::unique_ptr<Connection> connection_;
  const RenewalProtocol protocol_;
  const std::optional<ReplicaWait> wait_;
  std::size_t queued_ = 0, sent_ = 0;  ///< in this batch; of the latest, without an answer
  std::deque<RenewalAnswer> answers_;  ///< received ahead of their turn
  std::string failure_;
};

}  // namespace

void ReplicaWait::queue(Connection& redis) const {
  const std::string count = std::to_string(replicas);
  const std::string milliseconds =
      std::to_string(std::max<std::int64_t>(1, ceil_milliseconds(within)));
  const std::string_view words[] = {"WAIT", count, milliseconds};
  redis.queue(Command(words), {}, within);
}

StoreResult<void> ReplicaWait::receive(Connection& redis, const std::stop_token& stop,
                                       const std::function<void(int)>& seen) const {
  const auto acknowledged = redis.read(kCount, "WAIT", redis.receive(stop));
  if (!acknowledged) return tl::unexpected(acknowledged.error());
  if (seen) seen(static_cast<int>(*acknowledged));
  if (*acknowledged >= needed) return {};
  return failure_at(redis.display(), StoreError::Kind::refused,
                    fmt::format("{} of {} replicas acknowledged within {}", *acknowledged, replicas,
                                format_duration(within)));
}

std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol,
                                                     std::optional<ReplicaWait> wait) {
  return std::make_unique<RedisRenewals>(std::move(connection), protocol, wait);
}

tl::expected<Endpoint, std::string> parse_independent(std::string_view url) {
  auto endpoint = parse_endpoint(url);
  if (!endpoint || endpoint->cluster.empty()) return endpoint;
  return tl::unexpected<std::string>("this lock cannot use the servers of a cluster");
}

SingleNodeLock::SingleNodeLock(const Context& context, Replicas needed)
    : context_(context),
      endpoint_(endpoints_of(context, needed == Replicas::none ? parse_endpoint : parse_independent)
                    .front()),
      replicas_(wait_of(context.options, needed)),
      factory_(context.services.get_or_make<ConnectionFactory>(make_connection_factory)),
      redis_(factory_.make(endpoint_, context.options.timeouts(), context.env)) {}

AcquireResult SingleNodeLock::acquire(const AcquireRequest& request) {
  Lease lease{.key = std::string(request.key), .token = make_token()};
  Duration frees_itself_in = Duration::max();
  const auto try_once = [&](const AcquireRequest& once) -> Attempt {
    if (auto known = know_replicas(); !known) return tl::unexpected(std::move(known.error()));
    begin_validity();
    const StoreResult<TryResult> tried = try_acquire(once, lease);
    if (!tried) return tl::unexpected(tried.error());
    frees_itself_in = tried->frees_itself_in;
    if (!tried->granted) {
      if (listening_) listening_->found_taken();
      return std::nullopt;
    }
    const TimePoint end = end_of(asked_at_, request.ttl);
    if (env().now() >= end) {
      auto freed = decline(lease, once.stop);
      if (!freed) {
        freed.error().kind = StoreError::Kind::unanswered;  // it may be held
        return tl::unexpected(std::move(freed.error()));
      }
      if (*freed) notify_released(lease, once.stop);
      return std::nullopt;
    }
    lease.state = state_of(lease, end, asked_at_);
    return std::optional(std::move(lease));
  };
  const auto wait = [&](std::uint32_t earlier_waits, Duration left) {
    return wait_turn(request, lease, earlier_waits, std::min(left, frees_itself_in));
  };
  AcquireResult result = retry_after(wait, request, env(), try_once);
  if (listening_ && result.lease) listening_->satisfied();
  listening_.reset();
  if (result.lease) {
    keep_renewed(*result.lease, request.ttl);
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
  if (auto refused = refused_renewal(ttl)) return *std::move(refused);
  const TimePoint asked_at = env().now();
  const std::string argument = protocol->argument(ttl);
  const auto renewed =
      protocol->script != nullptr
          ? redis_->call(kFlag, *protocol->script, {lease.key}, {lease.token, argument})
          : redis_->call(kFlag, {protocol->unchecked, lease.key, argument});
  if (replicas_ && renewed.value_or(false)) {
    const auto kept = await_replicas({});
    if (!kept) return {RenewOutcome::failed, kept.error().message};
  }
  return to_renew_result(renewed, lease, env(), asked_at, protocol->granted(ttl));
}

StoreResult<void> SingleNodeLock::know_replicas() const {
  if (!replicas_ || replicas_->replicas > 0) return {};
  return failure_at(endpoint_.display(), StoreError::Kind::rejected,
                    "set --wait-replicas, the number of replicas to wait for");
}

void SingleNodeLock::queue_wait() {
  waits_since_ = env().now();
  replicas_->queue(*redis_);
}

StoreResult<void> SingleNodeLock::receive_wait(const std::stop_token& stop) {
  return replicas_->receive(*redis_, stop, [&](int acknowledged) {
    context_.services.get<StrategyObserver>().on_acknowledged(env().now() - waits_since_,
                                                              acknowledged, replicas_->needed);
  });
}

StoreResult<void> SingleNodeLock::await_replicas(const std::stop_token& stop) {
  const auto connection = redis_->times_connected();
  queue_wait();
  auto kept = receive_wait(stop);
  // On a new connection without writes, WAIT would count every replica.
  if (redis_->times_connected() == connection) return kept;
  return failure_at(endpoint_.display(), StoreError::Kind::unanswered,
                    "the connection was lost before WAIT");
}

void SingleNodeLock::notify_released(const Lease& lease, const std::stop_token& stop) {
  if (!notifies() || release_notifies()) return;
  // PUBLISH would send the message to every server of a cluster.
  const std::string_view publish = on_cluster() ? "SPUBLISH" : "PUBLISH";
  (void)redis_->call({publish, channel_of(lease.key), "released"}, stop);
}

WaitResult SingleNodeLock::wait_turn(const AcquireRequest& request, const Lease&,
                                     std::uint32_t earlier_waits, Duration longest) {
  if (notifies()) return wait_for_message(request, std::min(longest, request.ttl));
  const Duration delay = std::min(context_.waiting.delay(earlier_waits, env()), longest);
  return env().wait(nullptr, env().now() + delay, request.stop);
}

WaitResult SingleNodeLock::wait_for_message(const AcquireRequest& request, Duration longest) {
  // Without a subscription, poll.
  constexpr Duration kPollInterval = std::chrono::milliseconds(100);
  if (!woken_) woken_ = env().make_event();
  if (!listening_) {
    // The channel is in the key's slot, so the same server has both.
    const Endpoint server = server_of(request.key);
    auto& hub = context_.services.get_or_make<NotificationHub>(
        [&] {
          return std::make_shared<NotificationHub>(server, context_.options.command_timeout,
                                                   factory_, make_service_env(context_.services));
        },
        server.sharded ? fmt::format("{} {}", context_.urls.front(), server.display())
                       : context_.urls.front());
    listening_.emplace(hub, channel_of(request.key), *woken_);
    // The lock may have been released between the attempt and the subscription.
    if (listening_->subscribed()) return WaitResult::signalled;
  }
  if (!listening_->subscribed()) longest = std::min(longest, kPollInterval);
  const WaitResult result = env().wait(woken_.get(), env().now() + longest, request.stop);
  listening_->woken();
  return result;
}

void SingleNodeLock::find_channel(const RenewalProtocol& protocol, std::string_view key,
                                  Duration ttl) {
  if (ttl == channel_ttl_ && !on_cluster()) return;
  if (scheduler_ == nullptr) scheduler_ = &renewal_scheduler(context_.services);
  const Duration timeout = renewal_timeout(ttl / 3, context_.options.command_timeout);
  renewal_channel_ =
      fmt::format("{} {} {}", context_.urls.front(), protocol.name(), timeout.count());
  if (replicas_) {
    renewal_channel_ +=
        fmt::format(" {}/{} {}", replicas_->needed, replicas_->replicas, replicas_->within.count());
  }
  // A shard that is down fails its own renewals only, and from the second time on the scheduler
  // asks it after the others.
  if (on_cluster()) renewal_channel_ += " " + server_of(key).display();
  scheduler_->provide_channel(renewal_channel_, [&](Env& env) {
    return make_renewal_channel(factory_.make(endpoint_, timeout, env), protocol, replicas_);
  });
  channel_ttl_ = ttl;
}

void SingleNodeLock::keep_renewed(Lease& lease, Duration ttl) {
  const auto protocol = context_.renewing ? renewal_protocol() : std::nullopt;
  if (!protocol) return;
  find_channel(*protocol, lease.key, ttl);
  lease.renewal = scheduler_->keep({.key = lease.key,
                                    .token = lease.token,
                                    .state = lease.state,
                                    .granted_at = asked_at_,
                                    .ttl = ttl,
                                    .timing = *context_.renewing,
                                    .cap = context_.options.renew_cap,
                                    .channels = {renewal_channel_}});
}

StoreResult<bool> SingleNodeLock::set_nx_px(const AcquireRequest& request, std::string_view value) {
  const std::string milliseconds = std::to_string(ceil_milliseconds(request.ttl));
  return redis_->call(kOkOrNil, {"SET", request.key, value, "NX", "PX", milliseconds},
                      request.stop);
}

std::optional<RenewalProtocol> TokenLock::renewal_protocol() const {
  return RenewalProtocol{.script = &scripts::renew_if_token};
}

StoreResult<bool> TokenLock::give_back(const Lease& lease, const std::stop_token& stop) {
  return redis().call(kFlag, scripts::release_if_token, {lease.key}, {lease.token}, stop);
}

}  // namespace lockbench::redis
