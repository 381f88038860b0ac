#include "tests/support/broken_token_locks.h"

#include "strategies/redis/client/answers.h"
#include "strategies/redis/client/single_node.h"

namespace lockbench::test {
namespace {

struct NeverExpires : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    const TimePoint asked_at = env().now();
    const auto reply = redis().call({"SET", lease.key, lease.token, "NX"}, request.stop);
    if (!reply) return tl::unexpected(reply.error());
    lease.state = redis::valid_until(asked_at + request.ttl);
    return reply->is_text("OK");
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
    lease.state = redis::valid_until(env().now());
    return true;
  }
};

struct Textbook : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, lease.token);
  }
};

struct DoesNotTidyUp : Textbook {
  using Textbook::Textbook;
  StoreResult<bool> undo(const Lease&, const std::stop_token&) override { return false; }
};

struct TimerRenewsUnchecked : Textbook {
  using Textbook::Textbook;
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
