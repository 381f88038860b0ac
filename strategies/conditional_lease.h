#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

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

/// A lease on any store that can compare and set: put if absent, then compare and set by the
/// holder. Release and renewal read the item first, so that they cannot hit a successor's.
class ConditionalLease : public LockStrategy {
 public:
  /// Called once for each client, and once for its renewals.
  using MakeStore = std::function<std::unique_ptr<VersionedStore>(const Timeouts&, Env&)>;

  ConditionalLease(const Context& context, MakeStore make, const LeaseForm& form = kTokenForm);

  StoreResult<void> connect() final { return store_->connect(); }
  AcquireResult acquire(const AcquireRequest& request) final;
  ReleaseResult release(const Lease& lease) final;
  RenewResult renew(const Lease& lease, Duration ttl) final;

 protected:
  /// One attempt. Puts the item if it is absent.
  virtual StoreResult<bool> take(const AcquireRequest& request, Lease& lease);
  /// For how long a client trusts an item that the store keeps this long.
  virtual Duration trusted(Duration kept) const { return kept; }
  virtual WaitPolicy waiting(const AcquireRequest& /*request*/) const { return waiting_; }

  /// Puts the value for a new holder; if it was put, the lease is valid from before the request.
  StoreResult<bool> grant(const AcquireRequest& request, const std::string& value,
                          const VersionedItem* over, Lease& lease);

  Env& env() { return env_; }
  VersionedStore& store() { return *store_; }

 private:
  void keep_renewed(Lease& lease, Duration ttl);

  Env& env_;
  Services& services_;
  const StrategyOptions options_;
  const WaitPolicy waiting_;
  const std::optional<RenewalTiming> renewing_;
  const std::string url_;  ///< with secrets
  const MakeStore make_;
  const LeaseForm& form_;
  const std::unique_ptr<VersionedStore> store_;
};

}  // namespace lockbench
