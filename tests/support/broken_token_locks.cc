#include "tests/support/broken_token_locks.h"

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"

namespace lockbench::test {
namespace {

struct NeverExpires : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return redis().call(redis::kOkOrNil, {"SET", lease.key, lease.token, "NX"}, request.stop);
  }
};

/// SETNX, and an EXPIRE that was not sent: reports failed although the lock exists.
struct CallsHalfALockFailure : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const auto taken = redis().call({"SETNX", lease.key, lease.token}, request.stop);
    if (!taken) return tl::unexpected(taken.error());
    if (!taken->is_integer(1)) return false;
    const auto expires = redis().call({"EXPIRE", lease.key, "10"}, request.stop);
    if (!expires) return tl::unexpected(expires.error());
    return true;
  }
  Duration validity(Duration /*ttl*/) const override { return {}; }
};

struct DoesNotTidyUp : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<bool> undo(const Lease&, const std::stop_token&) override { return false; }
};

struct TimerRenewsUnchecked : redis::TokenLock {
  using TokenLock::TokenLock;
  std::optional<redis::RenewalProtocol> renewal_protocol() const override {
    return redis::RenewalProtocol{};
  }
};

}  // namespace

std::map<Flaw, Make> broken_token_locks() {
  return {{Flaw::never_expires, construct<NeverExpires>},
          {Flaw::does_not_tidy_up, construct<DoesNotTidyUp>},
          {Flaw::calls_half_a_lock_failure, construct<CallsHalfALockFailure>},
          {Flaw::timer_renews_unchecked, construct<TimerRenewsUnchecked>}};
}

}  // namespace lockbench::test
