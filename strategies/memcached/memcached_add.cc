#include "strategies/conditional_lease.h"
#include "strategies/memcached/client/connection.h"
#include "strategies/registry.h"

namespace lockbench::memcached {
namespace {

/// Adds the key and deletes it, even if another client holds the lock by then.
class Add : public TimedLease {
 public:
  /// Uses the first memcached endpoint.
  explicit Add(const Context& context)
      : TimedLease(context),
        memcached_(endpoints_of(context, parse_endpoint).front(), context.options.timeouts(),
                   context.env, context.services.get<Dialer>()) {}

  StoreResult<void> connect() override { return memcached_.connect(); }

 protected:
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override {
    const auto expiry = ItemTtl::of(request.ttl);
    if (!expiry) return tl::unexpected(expiry.error());
    const TimePoint asked_at = env().now();
    auto added = memcached_.add(lease.key, lease.token, expiry->asked, request.stop);
    if (added && *added) {
      lease.state = std::make_shared<LeaseState>(asked_at + expiry->kept, asked_at);
    }
    return added;
  }
  /// As it does not check the owner, it takes nothing back.
  StoreResult<bool> take_back(const Lease& /*lease*/, const std::stop_token& /*stop*/) override {
    return false;
  }
  StoreResult<bool> give_back(const Lease& lease) override { return memcached_.remove(lease.key); }
  StoreResult<bool> extend(const Lease& lease, Duration ttl) override {
    return ItemTtl::of(ttl).and_then(
        [&](const ItemTtl& expiry) { return memcached_.touch(lease.key, expiry.asked); });
  }
  StoreResult<Duration> valid_for(Duration ttl) const override {
    return ItemTtl::of(ttl).map([](const ItemTtl& expiry) { return expiry.kept; });
  }

 private:
  Connection memcached_;
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

/// add and gets with cas. Older memcached versions have no conditional delete, so an item is
/// removed by one that has expired.
class Items : public VersionedStore {
 public:
  Items(const Endpoint& endpoint, const Timeouts& timeouts, Env& env, Dialer& dialer)
      : memcached_(endpoint, timeouts, env, dialer) {}

  StoreResult<void> connect() override { return memcached_.connect(); }
  const std::string& display() const override { return memcached_.display(); }
  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token& stop) override {
    return memcached_.gets(key, stop).map([](const std::optional<Item>& item) {
      return item ? std::optional(VersionedItem{item->value, std::to_string(item->version)})
                  : std::nullopt;
    });
  }
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) override {
    // In the text protocol; the binary protocol would read it as a future time.
    std::int64_t seconds = -1;
    if (put.ttl > Duration::zero()) {
      const auto expiry = ItemTtl::of(put.ttl);
      if (!expiry) return tl::unexpected(expiry.error());
      seconds = expiry->asked;
    }
    if (put.over == nullptr) return memcached_.add(put.key, put.value, seconds, stop);
    return memcached_.cas(put.key, put.value, seconds, std::stoull(put.over->version), stop);
  }
  StoreResult<Duration> kept(Duration ttl) const override {
    return ItemTtl::of(ttl).map([](const ItemTtl& expiry) { return expiry.kept; });
  }

 private:
  Connection memcached_;
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
    .make = make_lease_on<ConditionalLease, Items, parse_endpoint, Dialer>,
}));

}  // namespace
}  // namespace lockbench::memcached
