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
#include "strategies/zookeeper/lock.h"
#include "tests/support/flawed_lock.h"
#include "tests/support/must.h"
#ifdef LOCKBENCH_HAS_ETCD
#include "strategies/etcd/client/messages.h"
#include "strategies/etcd/lock.h"
#endif

namespace lockbench::test {
namespace {

using simulate::Oracle;
using std::chrono::milliseconds;

const Descriptor& registered(std::string_view name) {
  const Descriptor* const strategy = find_strategy(name);
  if (strategy == nullptr) throw std::logic_error("no such strategy: " + std::string(name));
  return *strategy;
}

/// The same lock, as if its authors did not know these hazards.
Descriptor undeclared(std::string_view name, std::initializer_list<std::string_view> scenarios) {
  Descriptor strategy = registered(name);
  std::erase_if(strategy.hazards, [&](const KnownHazard& hazard) {
    return std::ranges::count(scenarios, hazard.scenario) > 0;
  });
  return strategy;
}

template <class Lock>
Descriptor like(std::string_view name) {
  Descriptor strategy = registered(name);
  strategy.make = [name](const Context& context) { return std::make_unique<Lock>(name, context); };
  return strategy;
}

/// Forwards every call to the lock of that name.
class Wrapped : public LockStrategy {
 public:
  Wrapped(std::string_view name, const Context& context)
      : env_(context.env), inner_(registered(name).make(context)) {}

  StoreResult<void> connect() override { return inner_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) override { return inner_->acquire(request); }
  ReleaseResult release(const Lease& lease) override { return inner_->release(lease); }

 protected:
  Env& env() { return env_; }

 private:
  Env& env_;
  std::unique_ptr<LockStrategy> inner_;
};

/// Counts the validity from the votes, which may be old by then.
struct TrustsVotes : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
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
struct RepeatsReleases : Wrapped {
  using Wrapped::Wrapped;
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = Wrapped::release(lease);
    for (int i = 0; i < 5 && result.outcome == ReleaseOutcome::failed; ++i) {
      env().wait(nullptr, env().now() + milliseconds(50), {});
      result = Wrapped::release(lease);
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
struct KeepsEntries : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    if (result.lease && !entries.emplace(request.key).second) result.lease->renewal->stop();
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    ReleaseResult result = Wrapped::release(lease);
    if (result.outcome == ReleaseOutcome::released) entries.erase(lease.key);
    return result;
  }
  std::set<std::string> entries;
};

/// A release soon after the grant comes before the renewal is scheduled, and so does not end it.
struct CancelsTooEarly : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    granted_at = env().now();
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    if (env().now() - granted_at > milliseconds(5)) return Wrapped::release(lease);
    leaked = lease.renewal;
    Lease without = lease;
    without.renewal.reset();
    return Wrapped::release(without);
  }
  TimePoint granted_at{};
  std::shared_ptr<Renewal> leaked;
};

/// A request is under way when its caller is interrupted: its grant is renewed all the same.
struct ForgetsGrants : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    if (result.outcome != AcquireOutcome::timed_out) return result;
    AcquireRequest under_way = request;
    under_way.deadline = env().now() + milliseconds(200);
    forgotten = Wrapped::acquire(under_way).lease;
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
struct KeepsFirstTtl : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    if (result.lease && held[std::string(request.key)]++ == 0) {
      const LeaseState& state = *result.lease->state;
      result.lease->state = std::make_shared<LeaseState>(state.valid_until(), state.confirmed_at());
    }
    return result;
  }
  ReleaseResult release(const Lease& lease) override {
    --held[lease.key];
    return Wrapped::release(lease);
  }
  std::map<std::string, int> held;
};

#ifdef LOCKBENCH_HAS_ETCD
/// Does not learn that its lease has ended.
struct TrustsItsLease : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    if (result.lease) result.lease->state = std::make_shared<LeaseState>(TimePoint::max());
    return result;
  }
};

/// Goes on after the end of its lease for longer than the store keeps others out.
struct TrustsItsGrace : Wrapped {
  using Wrapped::Wrapped;
  AcquireResult acquire(const AcquireRequest& request) override {
    AcquireResult result = Wrapped::acquire(request);
    if (!result.lease) return result;
    constexpr std::chrono::seconds kGrace{5};
    const LeaseState& state = *result.lease->state;
    result.lease->state =
        std::make_shared<LeaseState>(state.valid_until() + kGrace, state.confirmed_at());
    return result;
  }
};

/// etcd's mutex. As it was, it did not look whether its own place is still there when none is
/// before it any more.
template <bool kLooks>
class EtcdsMutex : public etcd::LeaseQueueLock {
 public:
  EtcdsMutex(std::string_view /*name*/, const Context& context) : LeaseQueueLock(context) {}

 protected:
  Looked enter(etcd::Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{
        .then = {etcd::put(own_key(place), place.session->leases.front()), before(place)}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    place.revision = (*result)->revision;
    // Its own is among them.
    const auto& keys = (*result)->found.at(1);
    etcd::Standing standing{.granted = keys.size() < 2};
    standing.fencing = static_cast<std::uint64_t>(place.revision);
    if (!standing.granted) standing.behind = keys[1].name;
    return standing;
  }
  Looked look(const etcd::Place& place, const std::stop_token& stop) override {
    const etcd::Txn txn{.then = {before(place), etcd::get(own_key(place))}};
    const auto result = etcd().transact(place.lock, txn, stop);
    if (!result) return tl::unexpected(result.error());
    if (!*result) return std::nullopt;
    if (kLooks && (*result)->found.at(1).empty()) return etcd::Standing{.there = false};
    const auto& keys = (*result)->found.front();
    etcd::Standing standing{.granted = keys.empty()};
    standing.fencing = static_cast<std::uint64_t>(place.revision);
    if (!standing.granted) standing.behind = keys[0].name;
    // The caller is told that it has the lock, which lasts for a TTL.
    const TimePoint now = env().now();
    if (standing.granted && !kLooks) {
      place.session->state = std::make_shared<LeaseState>(now + place.session->ttl, now);
    }
    return standing;
  }
  StoreResult<bool> leave(const etcd::Place& place, const std::stop_token& stop) override {
    return etcd().remove_key(place.lock, own_key(place), stop).map([](std::int64_t deleted) {
      return deleted > 0;
    });
  }

 private:
  static std::string own_key(const etcd::Place& place) { return place.lock + "/" + place.token; }
  /// The latest two places, or, once it has its own, the one before that.
  static etcdserverpb::RequestOp before(const etcd::Place& place) {
    return place.revision == 0 ? etcd::newest(place.lock + "/", 2)
                               : etcd::newest(place.lock + "/", 1, place.revision - 1);
  }
};

std::vector<KnownBug> bugs_on_etcd() {
  return {{.name = "LeaseGoneWhileWaiting",
           .what = "a lock is granted to a session that has ended while it waited",
           .where = "etcd 11456",
           .oracle = Oracle::overlap,
           .with = like<EtcdsMutex<false>>("etcd"),
           .without = like<EtcdsMutex<true>>("etcd")},
          {.name = "LeaseGoneWhileHolding",
           .what = "a holder that is cut off from the store goes on after its lease",
           .where = "etcd 10811",
           .oracle = Oracle::overlap,
           .with = like<TrustsItsLease>("etcd"),
           .without = registered("etcd")},
          {.name = "UnalignedLeases",
           .what = "a client's grace period is longer than the store's lock-delay",
           .where = "Burrows, The Chubby lock service",
           .oracle = Oracle::overlap,
           .seed = 67,
           .with = like<TrustsItsGrace>("chubby"),
           .without = registered("chubby")}};
}
#endif

enum class CuratorsMistake { none, takes_older_node, forgets_failed_release };

/// A queue of sequential nodes that first looks for the node of an attempt without an answer, as
/// Curator's protected creations do.
template <CuratorsMistake kMistake>
class CuratorsQueue : public zookeeper::NodeLock {
  static constexpr bool kTakesOlder = kMistake == CuratorsMistake::takes_older_node;
  static constexpr bool kForgets = kMistake == CuratorsMistake::forgets_failed_release;
  using Kind = zookeeper::Request::Kind;

 public:
  CuratorsQueue(std::string_view /*name*/, const Context& context) : NodeLock(context) {}

 protected:
  void begin(const Claim& /*claim*/) override {
    // With one name for all, a node may be of an earlier session, and will end with that.
    if (!kTakesOlder || name_.empty()) name_ = random_token(env()) + "-";
    holds_ = false;
  }

  StoreResult<bool> ask(Claim& claim, const std::stop_token& stop) override {
    auto there = call(Kind::children, claim.lock, claim.key, stop);
    if (!there) return tl::unexpected(there.error());
    auto own = find_own(there->children);
    if (own == there->children.end()) {
      const std::array requests{zookeeper::Request{Kind::make_sequential, claim.lock + "/" + name_},
                                zookeeper::Request{Kind::children, claim.lock}};
      auto replies = make_node(requests, claim, stop);
      if (!replies) return tl::unexpected(replies.error());
      if (!replies->front().done()) return false;
      there = std::move(replies->back());
      own = find_own(there->children);
      if (own == there->children.end()) return false;
    }
    claim.node = claim.lock + "/" + *own;
    const auto node = call(Kind::exists, claim.node, claim.key, stop);
    if (!node) return tl::unexpected(node.error());
    if (!node->done()) return false;
    claim.fencing = static_cast<std::uint64_t>(node->created_by);
    const zookeeper::Place place = zookeeper::place_among(there->children, *own);
    ahead_ = place.ahead ? claim.lock + "/" + std::string(*place.ahead) : "";
    holds_ = ahead_.empty();
    return holds_;
  }

  WaitResult wait_turn(const Claim& claim, TimePoint deadline,
                       const std::stop_token& stop) override {
    if (ahead_.empty()) return WaitResult::signalled;
    session().listen(ahead_);
    const auto seen = call(Kind::look, ahead_, claim.key, stop);
    return seen && seen->done() ? session().wait(deadline, stop) : WaitResult::signalled;
  }

  StoreResult<void> give_up(const Claim& claim, const std::stop_token& stop) override {
    if (holds_ && kForgets) return {};
    const auto there = call_in_sync(Kind::children, claim.lock, claim.key, stop);
    if (!there) return tl::unexpected(there.error());
    const auto own = find_own(there->children);
    if (own == there->children.end()) return {};
    return call(Kind::remove, claim.lock + "/" + *own, claim.key, stop).map([](const auto&) {});
  }

 private:
  std::vector<std::string>::const_iterator find_own(const std::vector<std::string>& children) {
    return std::ranges::find_if(
        children, [this](const std::string& child) { return child.starts_with(name_); });
  }

  std::string name_;   ///< of the node, without its number
  std::string ahead_;  ///< the path of the node ahead
  bool holds_ = false;
};

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<KnownBug> all_bugs() {
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
      {.name = "NodeOfAnEarlierSession",
       .what = "a node of an earlier session is taken for one of this session",
       .where = "Curator 498, 604",
       .oracle = Oracle::overlap,
       .seed = 804,
       .with = like<CuratorsQueue<CuratorsMistake::takes_older_node>>("zookeeper"),
       .without = like<CuratorsQueue<CuratorsMistake::none>>("zookeeper")},
      {.name = "ForgottenRelease",
       .what = "a release without an answer is forgotten, and its node stays",
       .where = "Curator 678",
       .oracle = Oracle::liveness,
       .seed = 241,
       .with = like<CuratorsQueue<CuratorsMistake::forgets_failed_release>>("zookeeper"),
       .without = like<CuratorsQueue<CuratorsMistake::none>>("zookeeper")},
  };
}

}  // namespace

const std::vector<KnownBug>& known_bugs() {
  static const std::vector<KnownBug> bugs = [] {
    std::vector<KnownBug> all = all_bugs();
#ifdef LOCKBENCH_HAS_ETCD
    std::ranges::move(bugs_on_etcd(), std::back_inserter(all));
#endif
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
