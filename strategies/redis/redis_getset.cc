#include "strategies/number.h"
#include "strategies/redis/client/single_node.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

// A key that is deleted between SETNX and GET more often than this counts as taken.
constexpr int kSetnxRounds = 3;

/// The lock's value is the time of its expiry, by the clock of the client that wrote it. The key
/// itself never expires. redis-getset takes over if the value that GETSET replaced has expired, as
/// redis.io has it ("because of the GETSET semantic, C4 can check if the old value stored at key is
/// still an expired timestamp"). With `kCompares` (redis-getset-cas) only if it is the value that
/// GET saw, as in the Java code that many blogs repeat (`oldValue.equals(currentValue)`).
template <bool kCompares>
class Getset : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    for (int round = 0; round < kSetnxRounds; ++round) {
      begin(request, lease);
      const auto created = set_nx(lease.key, lease.token, request.stop);
      if (!created || *created) return created;
      auto seen = redis().call(kTextOrNil, {"GET", lease.key}, request.stop);
      if (!seen) {
        // SETNX was refused and GET changes nothing, so the lock is not held.
        seen.error().kind = StoreError::Kind::not_sent;
        return tl::unexpected(seen.error());
      }
      if (!seen->has_value()) continue;  // released in between: try again
      if (!has_passed(**seen)) return false;
      begin(request, lease);
      const auto replaced =
          redis().call(kTextOrNil, {"GETSET", lease.key, lease.token}, request.stop);
      if (!replaced) return tl::unexpected(replaced.error());
      if (kCompares) return *replaced == *seen;
      // Nothing was replaced: the lock was released between GET and GETSET.
      return !*replaced || has_passed(**replaced);
    }
    return false;
  }

  /// DEL, unless this client's expiry has passed by its own clock.
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    if (has_passed(lease.token)) return false;
    return redis().call(kFlag, {"DEL", lease.key}, stop);
  }

 private:
  void begin(const AcquireRequest& request, Lease& lease) {
    begin_validity();
    lease.token = std::to_string(wall_milliseconds() + ceil_milliseconds(request.ttl));
  }

  /// Whether the value is a time that has passed; false for a value that is not a time.
  bool has_passed(std::string_view value) {
    const auto expiry = parse_number<std::int64_t>(value);
    return expiry && *expiry < wall_milliseconds();
  }

  std::int64_t wall_milliseconds() {
    const auto now = env().wall_now().time_since_epoch();
    return std::chrono::floor<std::chrono::milliseconds>(now).count();
  }
};

Descriptor described(Descriptor form) {
  form.acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"};
  form.release_commands = {"DEL key"};
  form.superseded_by = "redis-set-nx-lua";
  form.superseded_because = "it trusts the clocks of all clients";
  form.traits = {.release_check = OwnerCheck::local_clock, .waiting_choices = kWaitingChoices};
  return on_redis(std::move(form));
}

const Registration redis_getset(described({
    .name = "redis-getset",
    .summary = "The value is the expiry time; expired locks are taken over by GETSET: relies on "
               "all clients' clocks",
    .source = "redis.io \"SETNX\", \"Design pattern: Locking with SETNX\"",
    .make = construct<Getset<false>>,
}));

const Registration redis_getset_cas(described({
    .name = "redis-getset-cas",
    .summary = "As redis-getset, granted only if GETSET replaced the value that GET saw",
    .source = "common practice: the pattern of redis.io \"SETNX\" as blogs write it, with a "
              "comparison of the values",
    .make = construct<Getset<true>>,
}));

}  // namespace
}  // namespace lockbench::redis
