#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/notification_hub.h"
#include "strategies/redis/client/renewal_channel.h"

namespace lockbench::redis {

/// What one attempt found.
struct TryResult {
  bool granted = false;
  Duration frees_itself_in = Duration::max();  ///< at the latest, as far as is known

  TryResult(bool is_granted) : granted(is_granted) {}  // NOLINT(google-explicit-constructor)
  TryResult(bool is_granted, Duration longest) : granted(is_granted), frees_itself_in(longest) {}
};

/// What all locks on one Redis share: the connection, waiting, renewal on a timer, and tidying up
/// after a lost answer. A strategy adds its commands.
class SingleNodeLock : public LockStrategy {
 public:
  /// Uses the first Redis endpoint.
  explicit SingleNodeLock(const Context& context);

  StoreResult<void> connect() final {
    auto connected = redis_->connect();
    return connected ? prepare() : connected;
  }
  AcquireResult acquire(const AcquireRequest& request) final;
  /// Stops the renewal, gives the lock back, and tells the waiting if they wait to be told.
  ReleaseResult release(const Lease& lease) final;

 protected:
  /// Asks the server for what has to be known beforehand.
  virtual StoreResult<void> prepare() { return {}; }

  /// Asks once. `lease` comes with key and a token that is this acquisition's own; the strategy
  /// sets its state when granted. Not granted: somebody else has it.
  virtual StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) = 0;

  virtual ReleaseResult give_back(const Lease& lease) = 0;

  /// Between two attempts: by the policy that was chosen. Returns when `longest` is over at the
  /// latest.
  virtual WaitResult wait_turn(const AcquireRequest& request, const Lease& lease,
                               std::uint32_t earlier_waits, Duration longest);

  /// After waiting in vain: takes back what the waiting left in the store.
  virtual void withdraw(const Lease& /*lease*/, const std::stop_token& /*stop*/) {}

  /// How a timer renews it; nothing where none can.
  virtual std::optional<RenewalProtocol> renewal_protocol() const { return std::nullopt; }

  /// After a lost answer: frees the lock if it turns out to be held by this very acquisition, and
  /// returns whether it did. A stop ends this too, once the command is on its way. Nothing by
  /// default, as a lock without a token cannot be told from another's.
  virtual StoreResult<bool> undo(const Lease& /*lease*/, const std::stop_token& /*stop*/) {
    return false;
  }

  /// A grant whose answer came when its validity was over already is no use to anybody: takes it
  /// back, and returns whether that freed the lock.
  virtual StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) {
    return undo(lease, stop);
  }

  /// Whether give_back() and undo() themselves tell those who wait for a message.
  virtual bool tells_itself() const { return false; }

  /// What the store will know this acquisition by, if the protocol writes it down.
  virtual std::string make_token() { return {}; }

  /// SET key value NX PX ttl, and the lease's validity from the moment before it was sent.
  StoreResult<TryResult> set_nx_px(const AcquireRequest& request, Lease& lease,
                                   std::string_view value);

  Connection& redis() { return *redis_; }
  Env& env() { return env_; }
  /// As shown to people.
  std::string endpoint() const { return endpoint_.display(); }
  Services& services() { return services_; }
  int client() const { return client_; }
  /// Whether those who wait do so for a message.
  bool notifies() const { return waiting_.kind == WaitKind::notify; }
  /// Where a release of this key is announced.
  static std::string channel_of(std::string_view key) { return std::string(key) + ":released"; }

 private:
  /// Lost with the connection it is not worth more than a wait until the lock's end.
  void tell_released(const Lease& lease, const std::stop_token& stop);
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
  RenewalScheduler* scheduler_ = nullptr;  ///< and its channel: found when first needed
  std::string renewal_channel_;
  std::unique_ptr<Event> woken_;                     ///< by a message; made when first needed
  std::optional<NotificationHub::Place> listening_;  ///< during an acquisition
};

/// For locks whose value is the owner's token: the release and renewal that look at it in one step.
class TokenLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  ReleaseResult give_back(const Lease& lease) override;
  std::optional<RenewalProtocol> renewal_protocol() const override;
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override;
  std::string make_token() override { return random_token(env()); }
};

/// DEL, whoever holds it.
ReleaseResult release_unchecked(Connection& redis, const Lease& lease,
                                const std::stop_token& stop = {});
/// PEXPIRE, whoever holds it.
RenewResult renew_unchecked(Connection& redis, Env& env, const Lease& lease, Duration ttl);

/// For locks that are freed and prolonged without a look at whose they are: DEL and PEXPIRE.
class UncheckedLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return renew_unchecked(redis(), env(), lease, ttl);
  }

 protected:
  ReleaseResult give_back(const Lease& lease) override { return release_unchecked(redis(), lease); }
  std::optional<RenewalProtocol> renewal_protocol() const override { return RenewalProtocol{}; }
};

/// Whether that freed the lock; where it failed, nobody knows.
StoreResult<bool> freed_by(ReleaseResult&& release);

/// The answer to a release or renewal that counts what it changed: 1 or 0.
ReleaseResult to_release_result(const StoreResult<Reply>& reply);
RenewResult to_renew_result(const StoreResult<Reply>& reply, const Lease& lease, Env& env,
                            TimePoint asked_at, Duration granted);

/// How clients of a lock on one Redis may wait.
inline constexpr std::initializer_list<WaitKind> kWaitingChoices{WaitKind::poll, WaitKind::backoff,
                                                                 WaitKind::notify};

inline std::shared_ptr<LeaseState> valid_until(TimePoint end) {
  return std::make_shared<LeaseState>(end);
}

// What breaks it: a strategy's own weaknesses first, then those that it shares.

/// Every lock that lives on one Redis.
std::vector<KnownHazard> with_one_redis_hazards(std::vector<KnownHazard> own);
/// And is not renewed: whatever outlasts its validity breaks it.
std::vector<KnownHazard> with_overrun_hazards(std::vector<KnownHazard> own);
/// And whose key has a TTL, which the server's clock or memory may end early.
std::vector<KnownHazard> with_ttl_hazards(std::vector<KnownHazard> own);
/// The same where a timer renews it: no work is too long, and none ends it.
std::vector<KnownHazard> with_renewal_hazards(std::vector<KnownHazard> own);
/// Less those that it withstands after all.
std::vector<KnownHazard> without_hazards(std::vector<KnownHazard> list,
                                         std::initializer_list<std::string_view> withstood);
/// What a release that does not look at the owner adds: to be put among a strategy's own.
std::vector<KnownHazard> with_unchecked_release(std::vector<KnownHazard> own);
/// And what it and such a renewal add where the lock can run out under its holder.
std::vector<KnownHazard> with_unchecked_overrun(std::vector<KnownHazard> own);

}  // namespace lockbench::redis
