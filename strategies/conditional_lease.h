#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>

#include "strategies/descriptor.h"
#include "strategies/renewal.h"

namespace lockbench {

struct VersionedItem {
  std::string value;
  std::string version;  ///< changes with every write
};

/// A write that takes effect only if the item has not changed since it was read.
struct ConditionalPut {
  std::string_view key, value;
  /// Duration::max(): the item does not expire. Zero: it is gone at once.
  Duration ttl{};
  const VersionedItem* over = nullptr;  ///< null: if there is no item
};

/// All that a lease needs from a store without locks of its own. One connection to it, used by one
/// client, which reconnects by itself. Reports every command to its Env. A failure names the
/// server; `unanswered` if the command may have taken effect.
class VersionedStore {
 public:
  virtual ~VersionedStore() = default;
  virtual StoreResult<void> connect() = 0;
  virtual const std::string& display() const = 0;
  /// Nothing: there is no such item.
  virtual StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                        const std::stop_token& stop) = 0;
  /// False: the item has changed, or exists.
  virtual StoreResult<bool> put(const ConditionalPut& put, const std::stop_token& stop) = 0;
  /// For how long the store keeps an item with this TTL at least; by default the TTL in whole
  /// milliseconds.
  virtual StoreResult<Duration> kept(Duration ttl) const {
    return std::chrono::milliseconds(ceil_milliseconds(ttl));
  }
};

/// How a lease is written in its item.
struct LeaseForm {
  std::string_view name;
  bool expires = true;  ///< by the store; if not, a release leaves an item
  bool (*held_by)(const std::string& value, std::string_view token);
  std::string (*renewed)(const std::string& value, Duration ttl);
  std::string (*released)(const std::string& value);
};

/// Its value is the holder's token.
inline constexpr LeaseForm kTokenForm{
    .name = "token",
    .held_by = [](const std::string& value, std::string_view token) { return value == token; },
    .renewed = [](const std::string& value, Duration) { return value; },
    .released = [](const std::string&) { return std::string(); }};

/// The common part of leases with a random token and a TTL on one server: attempts by the waiting
/// policy, release, and renewal, also by a timer.
class TimedLease : public LockStrategy {
 public:
  explicit TimedLease(const Context& context) : context_(context) {}

  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  /// One attempt. If it is granted, sets the lease's state.
  virtual StoreResult<bool> take(const AcquireRequest& request, Lease& lease) = 0;
  /// Frees the lock if this lease holds it; also after a lost answer, and after a grant that came
  /// too late.
  virtual StoreResult<bool> take_back(const Lease& lease, const std::stop_token& stop) = 0;
  /// The release itself. False if the lease does not hold the lock.
  virtual StoreResult<bool> give_back(const Lease& lease) { return take_back(lease, {}); }
  virtual StoreResult<bool> extend(const Lease& lease, Duration ttl) = 0;
  /// For how long a client trusts a lock with this TTL.
  virtual StoreResult<Duration> valid_for(Duration ttl) const {
    return std::chrono::milliseconds(ceil_milliseconds(ttl));
  }
  virtual WaitPolicy waiting(const AcquireRequest& /*request*/) const { return context_.waiting; }

  /// What differs in the orders for its timer.
  virtual RenewalOrder order_for(Duration /*ttl*/) const { return {}; }
  /// Tells channels of one server apart.
  virtual std::string renewal_kind() const { return {}; }
  /// Null if a timer never renews it.
  virtual std::unique_ptr<RenewalChannel> make_renewals(Duration /*timeout*/, Env& /*env*/) const {
    return nullptr;
  }

  Env& env() { return context_.env; }
  const StrategyOptions& options() const { return context_.options; }

 private:
  void keep_renewed(Lease& lease, Duration ttl);

  const Context context_;
};

/// A lease on any store that can compare and set: put if absent, then compare and set by the
/// holder. Release and renewal read the item first, so that they cannot hit a successor's.
class ConditionalLease : public TimedLease {
 public:
  /// Called once for each client, and once for its renewals.
  using MakeStore = std::function<std::unique_ptr<VersionedStore>(const Timeouts&, Env&)>;

  ConditionalLease(const Context& context, MakeStore make, const LeaseForm& form = kTokenForm);

  StoreResult<void> connect() final { return store_->connect(); }

 protected:
  /// Puts the item if it is absent.
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override;
  /// For how long a client trusts an item that the store keeps this long.
  virtual Duration trusted(Duration kept) const { return kept; }

  /// Puts the value for a new holder; if it was put, the lease is valid from before the request.
  StoreResult<bool> grant(const AcquireRequest& request, const std::string& value,
                          const VersionedItem* over, Lease& lease);

  VersionedStore& store() { return *store_; }

 private:
  StoreResult<bool> take_back(const Lease& lease, const std::stop_token& stop) final;
  StoreResult<bool> extend(const Lease& lease, Duration ttl) final;
  StoreResult<Duration> valid_for(Duration ttl) const final;
  RenewalOrder order_for(Duration ttl) const final;
  std::string renewal_kind() const final { return std::string(form_.name); }
  std::unique_ptr<RenewalChannel> make_renewals(Duration timeout, Env& env) const final;

  const MakeStore make_;
  const LeaseForm& form_;
  const std::unique_ptr<VersionedStore> store_;
};

/// For Descriptor::make: such a lease on the first endpoint, by a Store that is made of it and of
/// these services.
template <class Kind, class Store, auto kParse, class... Shared>
std::unique_ptr<LockStrategy> make_lease_on(const Context& context) {
  return std::make_unique<Kind>(context, [endpoint = endpoints_of(context, kParse).front(),
                                          shared = std::tie(context.services.get<Shared>()...)](
                                             const Timeouts& timeouts, Env& env) {
    return std::apply(
        [&](Shared&... each) { return std::make_unique<Store>(endpoint, timeouts, env, each...); },
        shared);
  });
}

}  // namespace lockbench
