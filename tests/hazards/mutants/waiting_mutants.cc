// Locks with a defect in their waiting, and one that compares expiry times too strictly.

#include <algorithm>

#include "strategies/redis/client/single_node.h"
#include "tests/support/around.h"

namespace lockbench::redis {
namespace {

/// A ticket queue that does not drop dead waiters.
struct WaitsForTheDead : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (lease.token != drawn_by_) {
      const auto drawn = redis().call({"INCR", lease.key + ":drawn"}, request.stop);
      if (!drawn) return tl::unexpected(drawn.error());
      number_ = drawn->integer;
      drawn_by_ = lease.token;
    }
    const auto served = redis().call({"GET", lease.key + ":served"}, request.stop);
    if (!served) return tl::unexpected(served.error());
    served_ = served->is_nil() ? "0" : served->text;
    return served_ == std::to_string(number_ - 1);
  }

  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    const auto served = redis().call({"INCR", lease.key + ":served"}, stop);
    if (!served) return tl::unexpected(served.error());
    return true;
  }

  const std::string& served() const { return served_; }

 private:
  std::int64_t number_ = 0;
  std::string drawn_by_, served_;
};

/// The same, but it skips a waiter after a whole TTL.
struct WaitsOutTheDead : WaitsForTheDead {
  using WaitsForTheDead::WaitsForTheDead;
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string seen = served();
    auto tried = WaitsForTheDead::try_acquire(request, lease);
    if (!tried || tried->granted) return tried;
    if (served() != seen) served_since_ = env().now();
    if (env().now() < served_since_ + request.ttl) return tried;
    const auto passed_over = redis().call({"INCR", lease.key + ":served"}, request.stop);
    if (!passed_over) return tl::unexpected(passed_over.error());
    return WaitsForTheDead::try_acquire(request, lease);
  }

 private:
  TimePoint served_since_{};
};

/// Its place expires like a lock, and it never takes another one.
struct LosesItsPlace : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const std::string place = lease.key + ":place:" + lease.token;
    if (lease.token != placed_as_) {
      const auto placed = redis().call(
          kOk, {"SET", place, "1", "PX", std::to_string(ceil_milliseconds(request.ttl))},
          request.stop);
      if (!placed) return tl::unexpected(placed.error());
      placed_as_ = lease.token;
    }
    const auto there = redis().call(kFlag, {"EXISTS", place}, request.stop);
    if (!there) return tl::unexpected(there.error());
    return *there ? TokenLock::try_acquire(request, lease) : TryResult(false);
  }

 private:
  std::string placed_as_;
};

/// Believes that the lock has expired once it has waited for a TTL.
struct CountsItsWait : TokenLock {
  using TokenLock::TokenLock;
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    if (lease.token != waits_as_) {
      waits_as_ = lease.token;
      waits_since_ = env().now();
    }
    if (env().now() - waits_since_ > request.ttl) return true;
    return TokenLock::try_acquire(request, lease);
  }

 private:
  std::string waits_as_;
  TimePoint waits_since_{};
};

/// Tries again only after a notification.
struct TrustsTheMessage : TokenLock {
  using TokenLock::TokenLock;
  WaitResult wait_turn(const AcquireRequest& request, const Lease& lease,
                       std::uint32_t earlier_waits, Duration longest) override {
    const TimePoint until = wakes_at(request);
    WaitResult result = WaitResult::timed_out;
    while (result == WaitResult::timed_out && env().now() < until) {
      result = TokenLock::wait_turn(request, lease, earlier_waits, longest);
    }
    return result;
  }

  virtual TimePoint wakes_at(const AcquireRequest& request) { return request.deadline; }
};

/// Tries again after a notification, or after two TTLs.
struct WakesLate : TrustsTheMessage {
  using TrustsTheMessage::TrustsTheMessage;
  TimePoint wakes_at(const AcquireRequest& request) override {
    return std::min(env().now() + 2 * request.ttl, request.deadline);
  }
};

/// Releases only if the value is exactly what it wrote.
class KnowsItsOwnTimeOnly : public Around {
 public:
  explicit KnowsItsOwnTimeOnly(const Context& context)
      : Around("redis-getset-cas", context),
        redis_(context.services.get_or_make<ConnectionFactory>(make_connection_factory)
                   .make(parse_endpoint(context.urls.front()).value(), context.options.timeouts(),
                         context.env)) {}

  ReleaseResult release(const Lease& lease) override {
    const auto value = redis_->call({"GET", lease.key});
    if (!value) return {ReleaseOutcome::failed, value.error().message};
    if (value->is_text(lease.token)) return Around::release(lease);
    return {ReleaseOutcome::not_owner, {}};
  }

 private:
  const std::unique_ptr<Connection> redis_;
};

template <class Mutant>
Descriptor described(std::string_view name) {
  return with_known_hazards(
      {.name = name,
       .backend = "redis",
       .summary = "a correct lock with one defect",
       .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
       .release_commands = {"GET key", "DEL key"},
       .source = "our own",
       .traits = {.expiry = Expiry::ttl,
                  .release_check = OwnerCheck::local_clock,
                  .waiting_choices = kWaitingChoices},
       .make = construct<Mutant>});
}

const Registration dead(described<WaitsForTheDead>("test-waits-for-the-dead"));
const Registration slow(described<WaitsOutTheDead>("test-waits-out-the-dead"));
const Registration misplaced(described<LosesItsPlace>("test-loses-its-place"));
const Registration impatient(described<CountsItsWait>("test-counts-its-wait"));
const Registration late(described<WakesLate>("test-wakes-late"));
const Registration deaf(described<TrustsTheMessage>("test-trusts-the-message"));
const Registration own_time(described<KnowsItsOwnTimeOnly>("test-knows-its-own-time-only"));

}  // namespace
}  // namespace lockbench::redis
