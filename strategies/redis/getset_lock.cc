#include "strategies/redis/getset_lock.h"

#include "strategies/number.h"
#include "strategies/redis/client/answers.h"
#include "strategies/registry.h"

namespace lockbench::redis {
namespace {

// A key that is deleted between SETNX and GET more often than this counts as taken.
constexpr int kSetnxRounds = 3;

}  // namespace

StoreResult<TryResult> GetsetLock::try_acquire(const AcquireRequest& request, Lease& lease) {
  for (int round = 0; round < kSetnxRounds; ++round) {
    const TimePoint asked_at = env().now();
    lease.token = std::to_string(wall_milliseconds() + ceil_milliseconds(request.ttl));
    const auto created = set_nx(lease.key, lease.token, request.stop);
    if (!created) return tl::unexpected(created.error());
    if (*created) {
      lease.state = valid_until(asked_at + request.ttl);
      return true;
    }
    auto seen = redis().call(kTextOrNil, {"GET", lease.key}, request.stop);
    if (!seen) {
      // SETNX was refused and GET changes nothing, so the lock is not held.
      seen.error().kind = StoreError::Kind::not_sent;
      return tl::unexpected(seen.error());
    }
    if (!seen->has_value()) continue;  // released in between: try again at once
    if (!has_passed(**seen)) return false;
    return take_over_expired(request, lease, **seen);
  }
  return false;
}

StoreResult<TryResult> GetsetLock::take_over_expired(const AcquireRequest& request, Lease& lease,
                                                     const std::string& seen) {
  const TimePoint asked_at = env().now();
  lease.token = std::to_string(wall_milliseconds() + ceil_milliseconds(request.ttl));
  const auto replaced = get_set(lease.key, lease.token, request.stop);
  if (!replaced) return tl::unexpected(replaced.error());
  if (!takes_over(seen, *replaced)) return false;
  lease.state = valid_until(asked_at + request.ttl);
  return true;
}

StoreResult<bool> GetsetLock::give_back(const Lease& lease, const std::stop_token& stop) {
  if (has_passed(lease.token)) return false;
  return release_unchecked(redis(), lease, stop);
}

bool GetsetLock::has_passed(std::string_view value) {
  const auto expiry = parse_number<std::int64_t>(value);
  return expiry && *expiry < wall_milliseconds();
}

std::int64_t GetsetLock::wall_milliseconds() {
  return std::chrono::floor<std::chrono::milliseconds>(env().wall_now().time_since_epoch()).count();
}

namespace {

/// Article 000's second form, by its text: takes over if the value that GETSET replaced has expired
/// too. (Its code does not store the expiry after SETNX and would never release.)
class Getset : public GetsetLock {
 public:
  using GetsetLock::GetsetLock;

 protected:
  bool takes_over(const std::string& /*seen*/,
                  const std::optional<std::string>& replaced) override {
    // Nothing was replaced: the lock was released between GET and GETSET.
    return !replaced || has_passed(*replaced);
  }
};

const Registration redis_getset(with_known_hazards({
    .name = "redis-getset",
    .backend = "redis",
    .summary = "The value is the expiry time; expired locks are taken over by GETSET: relies on "
               "all clients' clocks",
    .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
    .release_commands = {"DEL key"},
    .source = "common practice: the pattern of redis.io \"SETNX\" without its last check",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it trusts the clocks of all clients",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::local_clock,
               .waiting_choices = kWaitingChoices},
    .make = construct<Getset>,
}));

/// As redis-getset, but takes over only if GETSET replaced the value that GET saw (article 002).
class GetsetCas : public GetsetLock {
 public:
  using GetsetLock::GetsetLock;

 protected:
  bool takes_over(const std::string& seen, const std::optional<std::string>& replaced) override {
    return replaced == seen;
  }
};

const Registration redis_getset_cas(with_known_hazards({
    .name = "redis-getset-cas",
    .backend = "redis",
    .summary = "As redis-getset, granted only if GETSET replaced the value that GET saw",
    .acquire_commands = {"SETNX key now+ttl", "GET key", "GETSET key now+ttl"},
    .release_commands = {"DEL key"},
    .source = "redis.io \"SETNX\", \"Design pattern: Locking with SETNX\"",
    .superseded_by = "redis-set-nx-lua",
    .superseded_because = "it trusts the clocks of all clients",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::local_clock,
               .waiting_choices = kWaitingChoices},
    .make = construct<GetsetCas>,
}));

}  // namespace
}  // namespace lockbench::redis
