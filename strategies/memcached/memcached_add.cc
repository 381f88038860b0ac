#include "strategies/memcached/client/connection.h"
#include "strategies/registry.h"
#include "strategies/waiting/retry.h"

namespace lockbench::memcached {
namespace {

/// The part that all locks on one memcached server share: `add key token ttl`, which succeeds for
/// one client only, and polling. A strategy adds how the item is released and renewed.
class AddLock : public LockStrategy {
 public:
  /// Uses the first memcached endpoint.
  explicit AddLock(const Context& context)
      : env_(context.env),
        waiting_(context.waiting),
        memcached_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(),
                   context.env) {}

  StoreResult<void> connect() final { return memcached_.connect(); }

  AcquireResult acquire(const AcquireRequest& request) final {
    return retry_with_token(
        request, env_, waiting_,
        [&](const AcquireRequest& once, Lease& lease) { return add(once, lease); },
        [&](const Lease& lease, const std::stop_token& stop) { return take_back(lease, stop); });
  }

  ReleaseResult release(const Lease& lease) final { return to_release_result(remove(lease, {})); }

  RenewResult renew(const Lease& lease, Duration ttl) final {
    if (auto refused = refused_renewal(ttl)) return *std::move(refused);
    const auto expiry = ItemTtl::of(ttl);
    if (!expiry) return {RenewOutcome::failed, expiry.error().message};
    const TimePoint asked_at = env_.now();
    return to_renew_result(prolong(lease, expiry->asked), lease, env_, asked_at, expiry->kept);
  }

 protected:
  /// Both return false if this client turns out not to hold the lock.
  virtual StoreResult<bool> remove(const Lease& lease, const std::stop_token& stop) = 0;
  virtual StoreResult<bool> prolong(const Lease& lease, std::int64_t seconds) = 0;

  /// After a lost or late answer: frees the lock if this acquisition holds it. Does nothing by
  /// default, for locks that do not check the owner.
  virtual StoreResult<void> take_back(const Lease& /*lease*/, const std::stop_token& /*stop*/) {
    return {};
  }

  Connection& memcached() { return memcached_; }

 private:
  StoreResult<bool> add(const AcquireRequest& request, Lease& lease) {
    const auto expiry = ItemTtl::of(request.ttl);
    if (!expiry) return tl::unexpected(expiry.error());
    const TimePoint asked_at = env_.now();
    auto added = memcached_.add(lease.key, lease.token, expiry->asked, request.stop);
    if (added && *added) {
      lease.state = std::make_shared<LeaseState>(asked_at + expiry->kept, asked_at);
    }
    return added;
  }

  Env& env_;
  const WaitPolicy waiting_;
  Connection memcached_;
};

/// Adds the key and deletes it, even if another client holds the lock by then.
class Add : public AddLock {
 public:
  using AddLock::AddLock;

 protected:
  StoreResult<bool> remove(const Lease& lease, const std::stop_token& stop) override {
    return memcached().remove(lease.key, stop);
  }
  StoreResult<bool> prolong(const Lease& lease, std::int64_t seconds) override {
    return memcached().touch(lease.key, seconds);
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
    .traits = {.release_check = OwnerCheck::none,
               .renew_check = OwnerCheck::none,
               .ttl_in_seconds = true,
               .kept_longer = kKeptLonger},
    .make = construct<Add>,
}));

/// Reads the item, and changes it only if it has not changed since. Older memcached versions have
/// no conditional delete, so a release replaces the item by an expired one.
class AddCas : public AddLock {
 public:
  using AddLock::AddLock;

 protected:
  StoreResult<bool> remove(const Lease& lease, const std::stop_token& stop) override {
    // In the text protocol; the binary protocol would read it as a future time.
    constexpr std::int64_t kExpired = -1;
    return replace_own(lease, {}, kExpired, stop);
  }
  StoreResult<bool> prolong(const Lease& lease, std::int64_t seconds) override {
    return replace_own(lease, lease.token, seconds, {});
  }
  StoreResult<void> take_back(const Lease& lease, const std::stop_token& stop) override {
    return remove(lease, stop).map([](bool) {});
  }

 private:
  /// False if the item is not, or no longer, this acquisition's.
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
    .traits = {.release_check = OwnerCheck::atomic,
               .renew_check = OwnerCheck::atomic,
               .ttl_in_seconds = true,
               .kept_longer = kKeptLonger},
    .make = construct<AddCas>,
}));

}  // namespace
}  // namespace lockbench::memcached
