#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/env.h"
#include "strategies/lease.h"
#include "strategies/observer.h"

namespace lockbench {

/// Renews batches of leases on one store, over its own connection. Only for the scheduler, one
/// thread at a time.
class RenewalChannel {
 public:
  virtual ~RenewalChannel() = default;
  /// Queues a renewal. Never fails: answer() reports failures.
  virtual void queue(std::string_view key, std::string_view token, Duration ttl) = 0;
  /// Sends everything that was queued.
  virtual void flush(const std::stop_token& stop) = 0;
  /// The answer to the oldest unanswered renewal. Call it once for each renewal.
  virtual RenewalAnswer answer(const std::stop_token& stop) = 0;
  /// Why the last answer failed: one line.
  virtual std::string failure() const = 0;
};

/// A lease to renew. Plain data, so that the scheduler does not need the strategy.
struct RenewalOrder {
  std::string key, token;
  std::shared_ptr<LeaseState> state;
  TimePoint granted_at{};  ///< the start of its validity
  Duration ttl{};          ///< requested by each renewal
  Duration drift{};        ///< subtracted from each validity
  RenewalTiming timing{};
  std::optional<Duration> cap{};  ///< no renewal beyond this time after the grant
  /// Once its validity is over it counts as lost, even if the store still has it.
  bool ends_with_validity = false;
  std::vector<std::string> channels;  ///< one, or one for each node
  int quorum = 1;                     ///< how many channels must renew it
};

class RenewalScheduler;

/// Renews one lease for as long as this object exists, or until stop().
class Renewal : public std::enable_shared_from_this<Renewal> {
 public:
  explicit Renewal(RenewalScheduler& scheduler, RenewalOrder order)
      : scheduler_(scheduler), order_(std::move(order)) {}
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;
  ~Renewal() { stop(); }

  /// Thread-safe. Does not wait: the answer to a renewal under way is ignored, and it is not sent
  /// to any more nodes.
  void stop() noexcept;

 private:
  friend class RenewalScheduler;
  using Due = std::multimap<TimePoint, std::weak_ptr<Renewal>>;

  RenewalScheduler& scheduler_;
  const RenewalOrder order_;
  // The scheduler's mutex guards the rest.
  std::optional<Due::iterator> place_;      ///< nothing while under way or finished
  TimePoint first_due_ = TimePoint::max();  ///< of a postponed or failed one; max(): none
  bool stopped_ = false;
};

/// Renews the leases of all clients of a run, as Redisson's watchdog does for one process. Renewals
/// are sent in order of their due times; those on one store in pipelined batches on one connection,
/// with those that are due a little later. A store that failed last time comes after the others,
/// which it would hold up for its timeout.
/// One task, started beside the first client that needs it, serves any number of leases. A lease is
/// marked lost when the store no longer knows its owner. When the store fails, its next turn comes
/// as usual, which is what Redisson does (renewal/RenewalTask.java: run() calls schedule() whether
/// the renewal failed or not; in earlier versions, RedissonBaseLock.java, a failure ended it), or
/// soon if the order says so. Differences: Redisson has one timer for all locks of a process, so
/// the first renewal comes up to a third of the TTL early, and its connection repeats a command by
/// itself (retryAttempts). Thread-safe. Outlives every Renewal.
class RenewalScheduler {
 public:
  enum class Drive { own_task, by_hand };

  /// `by_hand` is for simulated time: the caller calls run_due().
  RenewalScheduler(std::unique_ptr<Env> env, StrategyObserver& observer,
                   Drive drive = Drive::own_task)
      : env_(std::move(env)), observer_(observer), drive_(drive) {}
  RenewalScheduler(const RenewalScheduler&) = delete;
  RenewalScheduler& operator=(const RenewalScheduler&) = delete;

  /// Makes the channel with this name unless it exists. `make` gets the scheduler's Env. The name
  /// tells apart all that differs: server, database, user, command and timeout. It is not shown, as
  /// it may contain secrets.
  void provide_channel(const std::string& name,
                       const std::function<std::unique_ptr<RenewalChannel>(Env&)>& make);

  /// Starts to renew a newly granted lease.
  std::shared_ptr<Renewal> keep(RenewalOrder order);

  /// Sends every renewal that is due, and returns when the next one is.
  TimePoint run_due(const std::stop_token& stop = {});

  /// The number of leases that it renews, except those with a renewal under way.
  std::size_t kept() const {
    const std::scoped_lock lock(mutex_);
    return due_.size();
  }

 private:
  friend class Renewal;

  struct Channel {
    std::unique_ptr<RenewalChannel> store;
    TimePoint down_until{};  ///< not used before this time after a failure
    int failures = 0;
  };
  /// A renewal under way.
  struct Flight {
    std::shared_ptr<Renewal> renewal;
    TimePoint due{};
    TimePoint sent_at = TimePoint::max();  ///< on the first channel; start of the new validity
    TimePoint answered_at{};
    Duration ttl{};
    int asked = 0, renewed = 0, refused = 0;
    std::string reason;
  };

  void start_task();
  void drive(const std::stop_token& stop);
  TimePoint next_due() const { return due_.empty() ? TimePoint::max() : due_.begin()->first; }
  void put(Renewal& renewal, TimePoint due);
  std::vector<Flight> take_due(TimePoint due_by);
  /// When a quorum of its channels can be used again; now unless they failed lately.
  TimePoint usable_at(const RenewalOrder& order, TimePoint now) const;
  /// Returns how many of them have no channel whose latest renewals failed; these come first.
  std::size_t put_healthy_first(std::vector<Flight>& batch) const;
  void send(std::span<Flight> batch, const std::stop_token& stop);
  void leave_out_stopped(std::vector<Flight*>& flights) const;
  void receive(Channel& channel, std::vector<Flight*>& asked, const std::stop_token& stop);
  void settle(const Flight& flight);

  std::unique_ptr<Env> env_;
  StrategyObserver& observer_;
  const Drive drive_;
  mutable std::mutex mutex_;
  std::map<std::string, Channel> channels_;
  Renewal::Due due_;
  std::unique_ptr<Event> earlier_;  ///< set when a renewal is due before the task would wake
  TimePoint asleep_until_ = TimePoint::min();  ///< min: awake
  std::unique_ptr<Task> task_;  ///< last: ends before the members that it uses are destroyed
};

/// The time for an answer to a renewal: at most `useful`, as a later one is useless, but at least
/// 10 ms; and at most the command timeout. Below that, one of a few values, so that leases with
/// many TTLs share a few channels.
Duration renewal_timeout(Duration useful, Duration command_timeout);

class Services;

/// The run's scheduler, with its own task.
RenewalScheduler& renewal_scheduler(Services& services);

}  // namespace lockbench
