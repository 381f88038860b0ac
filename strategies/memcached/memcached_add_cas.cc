#include "strategies/memcached/client/item_ttl.h"
#include "strategies/memcached/lock.h"
#include "strategies/outcomes.h"
#include "strategies/registry.h"

namespace lockbench::memcached {
namespace {

/// An expiry in the past, in the text protocol; the binary protocol would read it as a future time.
constexpr std::int64_t kExpired = -1;

/// Reads the item first, and changes it only if it is still the one that was read. Older memcached
/// versions have no conditional delete, so a release replaces the item by one that has expired.
class AddCas : public AddLock {
 public:
  using AddLock::AddLock;

  ReleaseResult release(const Lease& lease) override {
    return to_release_result(replace_own(lease, {}, kExpired, {}));
  }

  RenewResult renew(const Lease& lease, Duration ttl) override {
    const auto expiry = ItemTtl::of(ttl);
    if (!expiry) return {RenewOutcome::failed, expiry.error().message};
    const TimePoint asked_at = env().now();
    return to_renew_result(replace_own(lease, lease.token, expiry->asked, {}), lease, env(),
                           asked_at, expiry->kept);
  }

 protected:
  StoreResult<void> take_back(const Lease& lease, const std::stop_token& stop) override {
    return replace_own(lease, {}, kExpired, stop).map([](bool) {});
  }

 private:
  /// False: the item is not, or no longer, this acquisition's.
  StoreResult<bool> replace_own(const Lease& lease, std::string_view value, std::int64_t seconds,
                                const std::stop_token& stop) {
    const auto item = memcached().gets(lease.key, stop);
    if (!item) return tl::unexpected(item.error());
    if (!*item || (*item)->value != lease.token) return false;
    return memcached().cas(lease.key, value, seconds, (*item)->version, stop);
  }
};

const Registration memcached_add_cas(with_known_hazards({
    .name = "memcached-add-cas",
    .backend = "memcached",
    .summary = "add, released by gets and a cas to an expired item, which cannot hit a successor",
    .acquire_commands = {"add key token ttl"},
    .release_commands = {"gets key", "cas key expired"},
    .source = "memcached's protocol.txt",
    .typical = true,
    .libraries = {{"Java", "xmemcached", "add with {ttl} + 2s, cas"},
                  {"Go", "gomemcache", "Add with Expiration {ttl} + 2s, CompareAndSwap"},
                  {"Python", "pymemcache", "add(expire = {ttl} + 2s), cas"}},
    .traits = {.expiry = Expiry::ttl,
               .release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .ttl_in_seconds = true,
               .kept_longer = kKeptLonger},
    .make = construct<AddCas>,
}));

}  // namespace
}  // namespace lockbench::memcached
