#include "strategies/memcached/client/item_ttl.h"
#include "strategies/memcached/lock.h"
#include "strategies/outcomes.h"
#include "strategies/registry.h"

namespace lockbench::memcached {
namespace {

/// Adds the key and deletes it, even if another client holds the lock by then.
class Add : public AddLock {
 public:
  using AddLock::AddLock;

  ReleaseResult release(const Lease& lease) override {
    return to_release_result(memcached().remove(lease.key));
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const auto expiry = ItemTtl::of(ttl);
    if (!expiry) return {RenewOutcome::failed, expiry.error().message};
    const TimePoint asked_at = env().now();
    return to_renew_result(memcached().touch(lease.key, expiry->asked), lease, env(), asked_at,
                           expiry->kept);
  }
};

const Registration memcached_add(with_known_hazards({
    .name = "memcached-add",
    .backend = "memcached",
    .summary = "add and delete: after an overrun it deletes its successor's lock",
    .acquire_commands = {"add key token ttl"},
    .release_commands = {"delete key"},
    .source = "memcached wiki \"ProgrammingTricks\" (ghetto central locking)",
    .superseded_by = "memcached-add-cas",
    .superseded_because = "its release frees the lock of another client",
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .ttl_in_seconds = true,
               .kept_longer = kKeptLonger},
    .make = construct<Add>,
}));

}  // namespace
}  // namespace lockbench::memcached
