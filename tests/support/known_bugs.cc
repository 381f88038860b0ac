#include "tests/support/known_bugs.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "strategies/redis/scripts.h"
#include "tests/support/flawed_lock.h"
#include "tests/support/must.h"

namespace lockbench::test {
namespace {

using simulate::Oracle;
using std::chrono::milliseconds;

/// The same lock, as if its authors did not know these hazards.
Descriptor undeclared(std::string_view name, std::initializer_list<std::string_view> scenarios) {
  Descriptor strategy = registered(name);
  std::erase_if(strategy.hazards, [&](const KnownHazard& hazard) {
    return std::ranges::count(scenarios, hazard.scenario) > 0;
  });
  return strategy;
}

/// Counts the validity from the votes, which may be old by then.
struct TrustsVotes : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease) result.lease->state->extend(env().now() + request.ttl, env().now());
    return result;
  }
};

/// All clients are threads that share one object, which has the token of the latest grant.
class SharedToken : public redis::TokenLock {
 public:
  SharedToken(std::string_view /*name*/, const Context& context) : TokenLock(context) {}

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    auto latest = redis().call(redis::kTextOrNil, {"GET", lease.key}, stop);
    if (!latest) return tl::unexpected(std::move(latest.error()));
    Lease shared = lease;
    shared.token = latest->value_or(lease.token);
    return TokenLock::give_back(shared, stop);
  }
};

/// Sends a release again if its answer was lost, although each counts.
struct RepeatsReleases : Around {
  using Around::Around;
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = Around::release(lease);
    for (int i = 0; i < 5 && result.outcome == ReleaseOutcome::failed; ++i) {
      env().wait(nullptr, env().now() + milliseconds(50), {});
      result = Around::release(lease);
    }
    return result;
  }
};

/// A lock that counts its owner's acquisitions, as Redisson's. It may send an acquisition again if
/// its answer was lost; otherwise each acquisition is another owner's.
template <bool kRepeats>
class Counted : public redis::SingleNodeLock {
 public:
  Counted(std::string_view /*name*/, const Context& context) : SingleNodeLock(context) {}

 protected:
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    const auto once = [&] {
      begin_validity();
      return redis().call(redis::kNilOrTimeLeft, redis::scripts::reentrant_acquire, {lease.key},
                          {lease.token, ttl}, request.stop);
    };
    auto tried = once();
    for (int i = 0; kRepeats && i < 5 && !tried; ++i) {
      env().wait(nullptr, env().now() + milliseconds(50), request.stop);
      tried = once();
    }
    return tried;
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const auto left =
        redis().call(redis::scripts::reentrant_release, {lease.key}, {lease.token, "20000"}, stop);
    if (!left) return tl::unexpected(left.error());
    return !left->is_nil();
  }
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }
  std::optional<redis::RenewalProtocol> renewal_protocol() const override {
    return redis::RenewalProtocol{.script = &redis::scripts::reentrant_renew};
  }
  std::string make_token() override {
    return kRepeats ? std::to_string(client()) : random_token(env());
  }
};

/// Does not renew a lock again whose earlier renewal has failed: its entry is still there.
struct KeepsEntries : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease && !entries.emplace(request.key).second) result.lease->renewal->stop();
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = Around::release(lease);
    if (result.outcome == ReleaseOutcome::released) entries.erase(lease.key);
    return result;
  }
  std::set<std::string> entries;
};

/// A release soon after the grant comes before the renewal is scheduled, and so does not end it.
struct CancelsTooEarly : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    granted_at = env().now();
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    if (env().now() - granted_at > milliseconds(5)) return Around::release(lease);
    leaked = lease.renewal;
    Lease without = lease;
    without.renewal.reset();
    return Around::release(without);
  }
  TimePoint granted_at{};
  std::shared_ptr<Renewal> leaked;
};

/// A request is under way when its caller is interrupted: its grant is renewed all the same.
struct ForgetsGrants : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.outcome != AcquireOutcome::timed_out) return result;
    AcquireRequest under_way = request;
    under_way.deadline = env().now() + milliseconds(200);
    forgotten = Around::acquire(under_way).lease;
    return result;
  }
  std::optional<Lease> forgotten;
};

/// Renewals of a process share a channel for each server, whatever the database.
class KeyedWithoutDatabase : public LockStrategy {
 public:
  KeyedWithoutDatabase(std::string_view /*name*/, const Context& context)
      : context_(context), lock_(std::make_unique<redis::TokenLock>(without_renewal(context))) {}

  StoreResult<void> connect() override { return lock_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = lock_->acquire(request);
    if (!result.lease) return result;
    auto& renewals = renewal_scheduler(context_.services);
    const redis::Endpoint endpoint = must(redis::parse_endpoint(context_.urls.front()));
    const std::string channel = endpoint.host;
    renewals.provide_channel(channel, [&](Env& env) {
      return redis::make_renewal_channel(
          context_.services.get_or_make<redis::ConnectionFactory>(redis::make_connection_factory)
              .make(endpoint, context_.options.timeouts(), env),
          {.script = &redis::scripts::renew_if_token});
    });
    result.lease->renewal = renewals.keep({.key = result.lease->key,
                                           .token = result.lease->token,
                                           .state = result.lease->state,
                                           .granted_at = result.lease->state->confirmed_at(),
                                           .ttl = request.ttl,
                                           .timing = *context_.renewing,
                                           .channels = {channel}});
    return result;
  }
  ReleaseResult release(const Lease& lease) override { return lock_->release(lease); }

 private:
  static Context without_renewal(Context context) {
    context.renewing.reset();
    return context;
  }

  const Context context_;
  std::unique_ptr<LockStrategy> lock_;
};

/// Does not notice that a second acquisition has given its lock a shorter TTL.
struct KeepsFirstTtl : Around {
  using Around::Around;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Around::acquire(request);
    if (result.lease && held[std::string(request.key)]++ == 0) {
      const LeaseState& state = *result.lease->state;
      result.lease->state = std::make_shared<LeaseState>(state.valid_until(), state.confirmed_at());
    }
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    --held[lease.key];
    return Around::release(lease);
  }
  std::map<std::string, int> held;
};

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<KnownBug> bugs_on_redis() {
  const auto pauses = {std::string_view("pause-holding"), std::string_view("pause-holding-fenced")};
  return {
      {.name = "Pause",
       .what = "a paused holder writes after its lease",
       .where = "Kleppmann, How to do distributed locking",
       .oracle = Oracle::lost_update,
       .seed = 71,
       .with = undeclared("redis-watchdog", pauses),
       .without = undeclared("redis-fenced", pauses)},
      {.name = "ClockJump",
       .what = "the clocks of Redlock's nodes jump",
       .where = "Kleppmann, How to do distributed locking",
       .oracle = Oracle::overlap,
       .seed = 38,
       .with = undeclared("redlock", {"redlock-clock-jump"}),
       .without = registered("redlock")},
      {.name = "Restart",
       .what = "a node of Redlock restarts without its keys",
       .where = "Kleppmann, How to do distributed locking",
       .oracle = Oracle::overlap,
       .seed = 17,
       .with = undeclared("redlock", {"redlock-node-restart-empty"}),
       .without = registered("redlock")},
      {.name = "ValidThoughExpired",
       .what = "Redlock is valid by its votes, though its time is over",
       .where = "redsync 72",
       .oracle = Oracle::overlap,
       .with = like<TrustsVotes>("redlock"),
       .without = registered("redlock")},
      {.name = "SharedToken",
       .what = "threads share the token of the latest grant",
       .where = "redis-py 491",
       .oracle = Oracle::overlap,
       .with = like<SharedToken>("redis-set-nx-lua"),
       .without = registered("redis-set-nx-lua")},
      {.name = "RepeatedRelease",
       .what = "a retry that is not idempotent: a release that counts",
       .where = "common practice",
       .oracle = Oracle::overlap,
       .seed = 361,
       .with = like<RepeatsReleases>("redis-reentrant"),
       .without = like<RepeatsReleases>("redis-set-nx-lua")},
      {.name = "RepeatedAcquisition",
       .what = "a repeated acquisition is counted twice, so that its owner keeps the lock",
       .where = "Redisson 4822",
       .oracle = Oracle::left_behind,
       .seed = 51,
       .with = like<Counted<true>>("redis-set-nx-lua"),
       .without = like<Counted<false>>("redis-set-nx-lua")},
      {.name = "RenewalEndsForEver",
       .what = "after a renewal has failed, later locks are not renewed",
       .where = "Redisson 3194",
       .oracle = Oracle::lost_lease,
       .seed = 631,
       .with = like<KeepsEntries>("redis-watchdog"),
       .without = registered("redis-watchdog")},
      {.name = "RenewalOutlivesRelease",
       .what = "a release comes before the renewal is scheduled, which then goes on",
       .where = "Redisson 7272",
       .oracle = Oracle::late_renewal,
       .with = like<CancelsTooEarly>("redis-watchdog"),
       .without = registered("redis-watchdog")},
      {.name = "InterruptedAcquisition",
       .what = "an interrupted acquisition is granted and renewed",
       .where = "Redisson 2714",
       .oracle = Oracle::late_renewal,
       .seed = 15,
       .with = like<ForgetsGrants>("redis-watchdog"),
       .without = registered("redis-watchdog")},
      {.name = "KeyedWithoutDatabase",
       .what = "locks on two databases share a renewal channel",
       .where = "our own",
       .oracle = Oracle::lost_lease,
       .seed = 1,
       .with = like<KeyedWithoutDatabase>("redis-watchdog"),
       .without = registered("redis-watchdog")},
      {.name = "ShorterInnerTtl",
       .what = "a second acquisition with a shorter TTL shortens the first",
       .where = "our own",
       .oracle = Oracle::overlap,
       .seed = 4,
       .with = like<KeepsFirstTtl>("redis-reentrant"),
       .without = registered("redis-reentrant")},
  };
}

}  // namespace

const std::vector<KnownBug>& known_bugs() {
  static const std::vector<KnownBug> bugs = [] {
    std::vector<KnownBug> all = bugs_on_redis();
#ifdef LOCKBENCH_HAS_ETCD
    std::ranges::move(bugs_on_etcd(), std::back_inserter(all));
#endif
    std::ranges::move(bugs_on_zookeeper(), std::back_inserter(all));
    return all;
  }();
  return bugs;
}

std::optional<Hit> hunt_for(Oracle oracle, const Descriptor& strategy, std::uint64_t first,
                            std::uint64_t most) {
  for (std::uint64_t i = 0; i < most; ++i) {
    simulate::Verdict verdict = must(simulate::play(strategy, {.seed = first + i}));
    const bool hit = verdict.finding && verdict.finding->oracle == oracle;
    if (hit) return Hit{.verdict = std::move(verdict), .seeds = i + 1};
  }
  return std::nullopt;
}

}  // namespace lockbench::test
