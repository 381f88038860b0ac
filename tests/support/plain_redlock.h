#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/observer.h"
#include "strategies/redis/redlock_lock.h"
#include "strategies/redis/scripts.h"
#include "strategies/waiting/retry.h"

namespace lockbench::test {

/// The flaws of an otherwise sound Redlock.
struct RedlockFlaws {
  bool ignores_validity = false;  ///< grants even if no validity is left
  bool minority_wins = false;     ///< one vote less than a majority is enough
  bool unanimous = false;         ///< needs every vote
  bool hoards = false;            ///< keeps the votes of a lost round
};

/// A minimal Redlock: asks one node after the other and waits for each.
template <RedlockFlaws kFlaws>
class PlainRedlock : public LockStrategy {
 public:
  explicit PlainRedlock(const Context& context)
      : env_(context.env),
        waiting_(context.waiting),
        observer_(context.services.get<StrategyObserver>()) {
    auto& factory =
        context.services.get_or_make<redis::ConnectionFactory>(redis::make_connection_factory);
    const Duration patience =
        context.options.node_timeout.value_or(context.options.command_timeout);
    for (const std::string& url : context.urls) {
      nodes_.push_back(factory.make(redis::parse_endpoint(url).value(), patience, env_));
    }
  }

  StoreResult<void> connect() override {
    for (const auto& node : nodes_) {
      if (auto connected = node->connect(); !connected) return connected;
    }
    return {};
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    return retry(request, env_, waiting_, [&](const AcquireRequest& once) { return vote(once); });
  }

  ReleaseResult release(const Lease& lease) override {
    int freed = 0;
    for (const auto& node : nodes_) freed += free(*node, lease) ? 1 : 0;
    return {freed >= needed() ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
  }

  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) override {
    return {RenewOutcome::unsupported, {}};
  }

 private:
  int needed() const {
    const auto nodes = static_cast<int>(nodes_.size());
    if (kFlaws.unanimous) return nodes;
    return redis::majority_of(nodes) - (kFlaws.minority_wins ? 1 : 0);
  }

  bool free(redis::Connection& node, const Lease& lease) {
    const auto freed = node.call(redis::scripts::release_if_token, {lease.key}, {lease.token});
    return freed && freed->is_integer(1);
  }

  Attempt vote(const AcquireRequest& request) {
    const TimePoint started = env_.now();
    Lease lease{.key = std::string(request.key), .token = random_token(env_)};
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    int granted = 0, failed = 0;
    for (const auto& node : nodes_) {
      const auto reply = node->call({"SET", lease.key, lease.token, "NX", "PX", ttl});
      granted += reply && reply->is_text("OK") ? 1 : 0;
      failed += reply ? 0 : 1;
    }
    const TimePoint valid_until = started + request.ttl - redis::drift_of(request.ttl);
    const Duration validity = valid_until - env_.now();
    observer_.on_round(false, validity);
    const bool in_time = kFlaws.ignores_validity || validity > Duration::zero();
    if (granted >= needed() && in_time) {
      lease.state = std::make_shared<LeaseState>(valid_until, started);
      return std::optional(std::move(lease));
    }
    for (const auto& node : nodes_) {
      if (!kFlaws.hoards) free(*node, lease);
    }
    if (failed > static_cast<int>(nodes_.size()) - needed()) {
      return tl::unexpected(StoreError{StoreError::Kind::not_sent, "too few nodes"});
    }
    return std::nullopt;
  }

  Env& env_;
  const WaitPolicy waiting_;
  StrategyObserver& observer_;
  std::vector<std::unique_ptr<redis::Connection>> nodes_;
};

}  // namespace lockbench::test
