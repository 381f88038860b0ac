#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "strategies/descriptor.h"
#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/notification_hub.h"
#include "strategies/redis/client/protocol.h"
#include "strategies/renewal.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {

/// The replicas that a lock waits for with WAIT, and how long. Their number is given and not read
/// from INFO, which lists only those connected now; one that is away may be promoted later without
/// the lock.
struct ReplicaWait {
  int replicas = 0;  ///< to wait for
  int needed = 0;    ///< of them, for success
  Duration within{};

  /// Queues WAIT, which covers all earlier writes of the same connection.
  void queue(Connection& redis) const;
  /// Its answer; `refused` if too few have acknowledged. Calls `seen` with their number.
  StoreResult<void> receive(Connection& redis, const std::stop_token& stop,
                            const std::function<void(int)>& seen = {}) const;
};

/// How a lock on Redis is renewed: by a script with the lock as its key and token and milliseconds
/// as arguments, which returns 1 if the caller holds it; without a script, by a command that does
/// not check the owner.
struct RenewalProtocol {
  const Script* script = nullptr;
  /// PEXPIRE counts in milliseconds, EXPIRE in whole seconds.
  std::string_view unchecked = "PEXPIRE";

  std::string_view name() const { return script != nullptr ? script->name : unchecked; }
  /// The TTL that the server grants, rounded up to its unit.
  Duration granted(Duration ttl) const {
    if (in_seconds()) return std::chrono::seconds(ceil_seconds(ttl));
    return std::chrono::milliseconds(ceil_milliseconds(ttl));
  }
  /// The command's argument.
  std::string argument(Duration ttl) const {
    return std::to_string(in_seconds() ? ceil_seconds(ttl) : ceil_milliseconds(ttl));
  }

 private:
  bool in_seconds() const { return script == nullptr && unchecked == "EXPIRE"; }
};

/// With `wait`, a renewal counts once enough replicas have it.
std::unique_ptr<RenewalChannel> make_renewal_channel(std::unique_ptr<Connection> connection,
                                                     const RenewalProtocol& protocol,
                                                     std::optional<ReplicaWait> wait = {});

/// A quorum's servers, or one with replicas: of a cluster, one server could hold several votes, and
/// WAIT would count another shard's replicas.
tl::expected<Endpoint, std::string> parse_independent(std::string_view url);

/// The result of one attempt.
struct TryResult {
  bool granted;
  Duration frees_itself_in;  ///< when the holder's TTL ends, if known

  // NOLINTNEXTLINE(google-explicit-constructor): a flag is the usual result
  TryResult(bool is_granted = false, Duration longest = Duration::max())
      : granted(is_granted), frees_itself_in(longest) {}
};

/// nil if granted, otherwise the PTTL of the lock in the way, -1 if that does not end.
inline constexpr Form<TryResult> kNilOrTimeLeft{
    "nil or milliseconds", [](const Reply& reply) -> std::optional<TryResult> {
      if (reply.is_nil()) return TryResult(true);
      const auto left = number_in(reply, -1, ceil_milliseconds(kLongestDuration));
      if (!left) return std::nullopt;
      return *left < 0 ? TryResult(false) : TryResult(false, std::chrono::milliseconds(*left));
    }};

/// The part that all locks on one Redis share: the connection, waiting, renewal by a timer, and
/// cleaning up after a lost answer. A strategy adds its commands.
class SingleNodeLock : public LockStrategy {
 public:
  /// How many of the server's replicas must acknowledge the lock.
  enum class Replicas { none, one, all };

  /// Uses the first Redis endpoint.
  explicit SingleNodeLock(const Context& context, Replicas needed = Replicas::none);

  StoreResult<void> connect() final {
    auto connected = redis_->connect();
    return connected ? know_replicas() : connected;
  }
  AcquireResult acquire(const AcquireRequest& request) final;
  /// Stops the renewal, releases the lock, and notifies waiting clients if they wait for that.
  ReleaseResult release(const Lease& lease) final;
  /// By renewal_protocol().
  RenewResult renew(const Lease& lease, Duration ttl) override;

 protected:
  /// One attempt. `lease` has the key and this acquisition's token. Not granted: another client has
  /// the lock.
  virtual StoreResult<TryResult> try_acquire(const AcquireRequest& request, Lease& lease) = 0;

  /// How long a grant is valid; Duration::max(): for ever. By default the TTL in whole
  /// milliseconds, as for PX.
  virtual Duration validity(Duration ttl) const {
    return std::chrono::milliseconds(ceil_milliseconds(ttl));
  }
  TimePoint end_of(TimePoint asked_at, Duration ttl) const {
    const Duration valid = validity(ttl);
    return valid == Duration::max() ? TimePoint::max() : asked_at + valid;
  }
  /// Starts the validity here instead of at the beginning of the attempt.
  void begin_validity() { asked_at_ = env().now(); }

  /// The release itself. False if this client no longer holds the lock.
  virtual StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) = 0;

  /// The wait between two attempts, by the chosen policy, for at most `longest`.
  virtual WaitResult wait_turn(const AcquireRequest& request, const Lease& lease,
                               std::uint32_t earlier_waits, Duration longest);

  /// After an acquisition without a grant: removes traces of waiting from the store.
  virtual void withdraw(const Lease& /*lease*/, const std::stop_token& /*stop*/) {}

  /// How it is renewed, also by a timer; nothing if it cannot be renewed.
  virtual std::optional<RenewalProtocol> renewal_protocol() const { return std::nullopt; }

  /// After a lost answer: frees the lock if this acquisition holds it, and returns whether it did.
  /// A stop ends this too, but only after the command was sent. Does nothing by default: without a
  /// token the lock may be another client's.
  virtual StoreResult<bool> undo(const Lease& /*lease*/, const std::stop_token& /*stop*/) {
    return false;
  }

  /// The state of a lease that was granted at `asked_at`, until `end`. A lock that the client holds
  /// already has one state for all of its leases.
  virtual std::shared_ptr<LeaseState> state_of(const Lease& /*lease*/, TimePoint end,
                                               TimePoint asked_at) {
    return std::make_shared<LeaseState>(end, asked_at);
  }

  /// Frees a lock whose grant arrived after the end of its validity, and returns whether it did.
  virtual StoreResult<bool> decline(const Lease& lease, const std::stop_token& stop) {
    return undo(lease, stop);
  }

  /// Whether give_back() and undo() notify waiting clients themselves.
  virtual bool release_notifies() const { return false; }

  /// The owner that the protocol stores, if any.
  virtual std::string make_token() { return {}; }

  /// SET key value NX PX ttl. True: the key was set.
  StoreResult<bool> set_nx_px(const AcquireRequest& request, std::string_view value);

  /// SETNX key value, which gives the key no TTL. True: the key was set.
  StoreResult<bool> set_nx(std::string_view key, std::string_view value,
                           const std::stop_token& stop) {
    return redis_->call(kFlag, {"SETNX", key, value}, stop);
  }

  /// As ReplicaWait, and reported to the observer.
  void queue_wait();
  StoreResult<void> receive_wait(const std::stop_token& stop);
  /// Both, for the latest writes.
  StoreResult<void> await_replicas(const std::stop_token& stop);

  Connection& redis() { return *redis_; }
  Env& env() { return context_.env; }
  int client() const { return context_.client; }
  bool on_cluster() const { return !endpoint_.cluster.empty(); }
  /// Whether clients wait for a message.
  bool notifies() const { return context_.waiting.kind == WaitKind::notify; }
  /// The channel on which a release of this key is announced.
  static std::string channel_of(std::string_view key) { return std::string(key) + ":released"; }

 private:
  /// Fails if the lock waits for replicas and their number is not given.
  StoreResult<void> know_replicas() const;
  /// Announces a release. If the message is lost, clients wait until the TTL ends.
  void notify_released(const Lease& lease, const std::stop_token& stop);
  WaitResult wait_for_message(const AcquireRequest& request, Duration longest);
  void keep_renewed(Lease& lease, Duration ttl);
  /// Makes sure that there is a channel for leases of this key with this TTL.
  void find_channel(const RenewalProtocol& protocol, std::string_view key, Duration ttl);
  /// The server with this key.
  Endpoint server_of(std::string_view key) const {
    return redis_->server_of(key).value_or(endpoint_);
  }

  const Context context_;
  const Endpoint endpoint_;
  const std::optional<ReplicaWait> replicas_;
  ConnectionFactory& factory_;
  std::unique_ptr<Connection> redis_;
  TimePoint asked_at_{};  ///< the beginning of a grant's validity
  TimePoint waits_since_{};
  RenewalScheduler* scheduler_ = nullptr;  ///< found when first needed
  Duration channel_ttl_{};                 ///< for which the channel was found; zero: none
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
    return set_nx_px(request, lease.token);
  }
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override;
  std::optional<RenewalProtocol> renewal_protocol() const override;
  StoreResult<bool> undo(const Lease& lease, const std::stop_token& stop) override {
    return give_back(lease, stop);
  }
  std::string make_token() override { return random_token(env()); }
};

/// For locks that are released and renewed without checking the owner: DEL and PEXPIRE.
class UncheckedLock : public SingleNodeLock {
 public:
  using SingleNodeLock::SingleNodeLock;

 protected:
  StoreResult<bool> give_back(const Lease& lease, const std::stop_token& stop) override {
    return redis().call(kFlag, {"DEL", lease.key}, stop);
  }
  std::optional<RenewalProtocol> renewal_protocol() const override { return RenewalProtocol{}; }
};

/// With the hazards that follow from its traits.
inline Descriptor on_redis(Descriptor strategy) {
  strategy.backend = "redis";
  return with_known_hazards(std::move(strategy));
}

/// The ways of waiting that a lock on one Redis supports.
inline constexpr std::initializer_list<WaitKind> kWaitingChoices{WaitKind::poll, WaitKind::backoff,
                                                                 WaitKind::notify};

}  // namespace lockbench::redis
