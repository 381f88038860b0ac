#pragma once

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"

namespace lockbench::test {

// Locks on Redis that are derived from lockbench's own, with one mistake each.

struct NeverExpires : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<redis::TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return redis().call(redis::kOkOrNil, {"SET", lease.key, lease.token, "NX"}, request.stop);
  }
};

/// Leaves its key behind after an acquisition with unknown outcome.
struct DoesNotTidyUp : redis::TokenLock {
  using TokenLock::TokenLock;
  StoreResult<bool> undo(const Lease&, const std::stop_token&) override { return false; }
};

struct RenewsUnchecked : redis::TokenLock {
  using TokenLock::TokenLock;
  std::optional<redis::RenewalProtocol> renewal_protocol() const override {
    return redis::RenewalProtocol{};
  }
};

}  // namespace lockbench::test
