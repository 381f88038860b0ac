#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/outcomes.h"
#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/notification_hub.h"
#include "strategies/redis/client/renewal_channel.h"

namespace lockbench::redis {

/// The result of one attempt.
struct TryResult {
  bool granted = false;
  Duration frees_itself_in = Duration::max();  ///< when the holder's TTL ends, if known

  TryResult(bool is_granted) : granted(is_granted) {}  // NOLINT(google-explicit-constructor)
  TryResult(bool is_granted, Duration longest) : granted(is_granted), frees_itself_in(longest) {}
};

/// kKeptFor, for EX.
inline constexpr std::string_view kKeptSeconds = "86400";
static_assert(kKeptFor == std::chrono::seconds(86'400));

/// The part that all locks on one Redis share: the connection, waiting, renewal by a timer, and
/// cleaning up after a lost answer. A strategy adds its commands.
class SingleNodeLock : public LockStrategy {
 public:
  /// Uses the first Redis endpoint.
  explicit SingleNodeLock(const Context& context);

  StoreResult<void> connect() final {
    auto connected = redis_->connect();
    return connected ? prepare() : connected;
  }
  AcquireResult acquire(const AcquireRequest& request) final;
  /// Stops the renewal, releases the lock, and notifies waiting clients if they wait for that.
  ReleaseResult release(const Lease& lease) final;
  /// By renewal_protocol().
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  /// Called after connect(), for what must be known before the first acquisition.
  virtual StoreResult<void> prepare() { return {}; }

  /// One attempt. `lease` has the key and this acquisition's token; if granted, the strategy sets
  /// its state. Not granted: another client has the lock.
  virtual StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) = 0;

  /// The release itself. False: this client does not hold the lock any more.
  virtual StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) = 0;

  /// The wait between two attempts, by the chosen policy, for at most `longest`.
  virtual WaitResult wait_turn(const AcquireRequest& request, const Lease& lease,
                               std::uint32_t earlier_waits, Duration longest);

  /// After an acquisition without a grant: removes what waiting left in the store.
  virtual void withdraw(const Lease& /*lease*/, const std::stop_token& /*stop*/) {}

  /// How it is renewed, also by a timer; nothing if it cannot be renewed.
  virtual std::optional<RenewalProtocol> renewal_protocol() const { return std::nullopt; }

  /// After a lost answer: frees the lock if this acquisition holds it, and returns whether it did.
  /// A stop ends this too, after the command was sent. Does nothing by default: without a token the
  /// lock may be another client's.
  virtual StoreResult<bool> undo(const Lease& /*lease*/, const std::stop_token& /*stop*/) {
    return false;
  }

  /// Frees a lock whose grant arrived after the end of its validity, and returns whether it did.
  virtual StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) {
    return undo(lease, stop);
  }

  /// Whether give_back() and undo() notify waiting clients themselves.
  virtual bool release_notifies() const { return false; }

  /// The owner that the protocol stores, if any.
  virtual std::string make_token() { return {}; }

  /// SET key value NX PX ttl, and the lease's validity from the moment before it was sent.
  StoreResult<TryResult> set_nx_px(const AcquireRequest& request, Lease& lease,
                                   std::string_view value);

  /// SETNX and GETSET, which give a key no TTL; if keys are to be bounded, SET with one of
  /// kKeptFor. True: the key was set.
  StoreResult<bool> set_nx(std::string_view key, std::string_view value,
                           const std::stop_token& stop);
  StoreResult<std::optional<std::string>> get_set(std::string_view key, std::string_view value,
                                                  const std::stop_token& stop);

  Connection& redis() { return *redis_; }
  Env& env() { return env_; }
  /// Without credentials.
  std::string endpoint() const { return endpoint_.display(); }
  int client() const { return client_; }
  /// Whether clients wait for a message.
  bool notifies() const { return waiting_.kind == WaitKind::notify; }
  /// The channel on which a release of this key is announced.
  static std::string channel_of(std::string_view key) { return std::string(key) + ":released"; }

 private:
  /// Announces a release. If the message is lost, clients wait until the TTL ends.
  void notify_released(const Lease& lease, const std::stop_token& stop);
  WaitResult wait_for_message(const AcquireRequest& request, Duration longest);
  void keep_renewed(Lease& lease, TimePoint granted_at, Duration ttl);
  bool find_scheduler(Duration ttl);

  Env& env_;
  Services& services_;
  const StrategyOptions options_;
  const Endpoint endpoint_;
  const WaitPolicy waiting_;
  const std::optional<RenewalTiming> renewing_;
  const int client_;
  ConnectionFactory& factory_;
  std::unique_ptr<Connection> redis_;
  RenewalScheduler* scheduler_ = nullptr;  ///< found, with its channel, when first needed
  std::string renewal_channel_;
  std::unique_ptr<Event> woken_;                      ///< set by a message; made when first needed
  std::optional<NotificationHub::Waiter> listening_;  ///< during an acquisition
};

/// For locks whose value is the owner's token: scripts check it on release and renewal.
class TokenLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

 protected:
  /// SET NX PX with the token.
  StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) override {
    return set_nx_px(request, lease, lease.token);
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override;
  std::optional<RenewalProtocol> renewal_protocol() const override;
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }
  std::string make_token() override { return random_token(env()); }
};

/// DEL, without checking the owner.
StoreResult<bool> release_unchecked(Connection& redis, const Lease& lease,
                                    const std::stop_token& stop = {});
/// PEXPIRE, without checking the owner.
RenewResult renew_unchecked(Connection& redis, Env& env, const Lease& lease, Duration ttl);

/// For locks that are released and renewed without checking the owner: DEL and PEXPIRE.
class UncheckedLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return release_unchecked(redis(), lease, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override { return RenewalProtocol{}; }
};

/// The ways of waiting that a lock on one Redis supports.
inline constexpr std::initializer_list<WaitKind> kWaitingChoices{WaitKind::poll, WaitKind::backoff,
                                                                 WaitKind::notify};

inline std::shared_ptr<LeaseState> valid_until(TimePoint end) {
  return std::make_shared<LeaseState>(end);
}

}  // namespace lockbench::redis
