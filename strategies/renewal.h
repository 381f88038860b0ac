#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strategies/env.h"
#include "strategies/lease.h"
#include "strategies/renewal_timing.h"

namespace lockbench {

enum class RenewalAnswer {
  renewed,
  not_owner,
  failed,  ///< no answer, or an error: whether it took effect is not known
};

/// One store's way to prolong many leases at once, on a connection of its own. Used by the
/// scheduler alone, one thread at a time.
class RenewalChannel {
 public:
  virtual ~RenewalChannel() = default;
  /// Puts a renewal on its way. Never fails: the answer does.
  virtual void queue(std::string_view key, std::string_view token, Duration ttl) = 0;
  /// Sends what was queued, all at once.
  virtual void flush(const std::stop_token& stop) = 0;
  /// The answer to the oldest that has none yet. To be called once for each.
  virtual RenewalAnswer answer(const std::stop_token& stop) = 0;
  /// Why the latest answer failed: one line.
  virtual std::string failure() const = 0;
};

/// A lease that is to be kept: data, so that renewal needs nothing of the strategy's.
struct RenewalOrder {
  std::string key, token;
  std::shared_ptr<LeaseState> state;
  TimePoint granted_at{};  ///< from which its validity counts
  Duration ttl{};          ///< what each renewal asks for
  Duration drift{};        ///< taken off each validity
  RenewalTiming timing{};
  std::optional<Duration> cap{};      ///< how long after the grant renewal may reach at most
  std::vector<std::string> channels;  ///< one, or those of all nodes
  int quorum = 1;                     ///< how many must renew it
  /// Another lease: once that is lost, this one is left to run out. Null: it stands alone.
  std::shared_ptr<const LeaseState> tied_to{};
};

/// What became of one renewal.
struct RenewalReport {
  RenewalAnswer outcome = RenewalAnswer::failed;
  int commands = 0;     ///< that it took: one for each node that was asked
  Duration slip{};      ///< how late it was sent, against due
  Duration duration{};  ///< from there to its answer
  Duration margin{};    ///< validity that was left when it landed; negative: none was
  std::string reason;   ///< for failures
};

/// Is told of every renewal. Called on the scheduler's thread; must not call back.
class RenewalObserver {
 public:
  virtual ~RenewalObserver() = default;
  virtual void on_renewal(const RenewalReport& report) = 0;
};

/// Tells nobody.
std::shared_ptr<RenewalObserver> make_deaf_observer();

class RenewalScheduler;

/// Keeps one lease renewed as long as it lives, or until it is stopped.
class Renewal : public std::enable_shared_from_this<Renewal> {
 public:
  explicit Renewal(RenewalScheduler& scheduler, RenewalOrder order)
      : scheduler_(scheduler), order_(std::move(order)) {}
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;
  ~Renewal() { stop(); }

  /// Thread-safe, and does not wait: a renewal that is under way lands unheard, and changes nothing
  /// if the release came first, as the store checks the owner.
  void stop() noexcept;

 private:
  friend class RenewalScheduler;
  using Due = std::multimap<TimePoint, std::weak_ptr<Renewal>>;

  RenewalScheduler& scheduler_;
  const RenewalOrder order_;
  // The scheduler's mutex guards the rest.
  std::optional<Due::iterator> place_;  ///< nothing while it is under way, or over
  bool stopped_ = false;
};

/// Renews the leases of all clients of a run (articles 000 and 004's guard thread, and Redisson's
/// watchdog, for all locks at once): in order of due time, those that are due on one store in
/// pipelined batches on one connection. One thread, whatever the number of leases. A lease whose
/// owner the store no longer knows is marked lost; one whose store fails is tried again until it is
/// released. Thread-safe. Outlives every Renewal.
class RenewalScheduler {
 public:
  enum class Drive { own_thread, by_hand };

  /// By hand, for simulated time: whoever drives it calls run_due().
  RenewalScheduler(std::unique_ptr<Env> env, RenewalObserver& observer,
                   Drive drive = Drive::own_thread);
  RenewalScheduler(const RenewalScheduler&) = delete;
  RenewalScheduler& operator=(const RenewalScheduler&) = delete;
  ~RenewalScheduler();

  /// Makes the channel of that name if it is not there yet. `make` gets the scheduler's own world.
  void provide_channel(const std::string& name,
                       const std::function<std::unique_ptr<RenewalChannel>(Env&)>& make);

  /// Begins to renew a lease that was just granted.
  std::shared_ptr<Renewal> keep(RenewalOrder order);

  /// Sends every renewal that is due, and returns when the next one is.
  TimePoint run_due() { return run_due(std::stop_token()); }

  /// How many leases it keeps, those apart whose renewal is under way.
  std::size_t kept() const;

 private:
  friend class Renewal;

  struct Channel {
    std::unique_ptr<RenewalChannel> store;
    TimePoint down_until{};  ///< not asked before: it failed
    int failures = 0;
  };
  /// A renewal under way. Keeps it alive.
  struct Flight {
    std::shared_ptr<Renewal> renewal;
    TimePoint due{};
    TimePoint sent_at = TimePoint::max();  ///< to the first of its channels: validity begins there
    TimePoint answered_at{};
    Duration ttl{};
    int asked = 0, renewed = 0, refused = 0;
    std::string reason;
  };

  void stop(Renewal& renewal) noexcept;
  void drive(const std::stop_token& stop);
  TimePoint run_due(const std::stop_token& stop);
  TimePoint next_due() const { return due_.empty() ? TimePoint::max() : due_.begin()->first; }
  void put(Renewal& renewal, TimePoint due);
  std::vector<Flight> take_due(TimePoint due_by);
  /// When enough of its channels may be asked: now, unless they failed lately.
  TimePoint askable_at(const RenewalOrder& order, TimePoint now) const;
  void fly(std::vector<Flight>& batch, const std::stop_token& stop);
  void hear(Channel& channel, std::vector<Flight*>& asked, const std::stop_token& stop);
  void settle(const Flight& flight);

  std::unique_ptr<Env> env_;
  RenewalObserver& observer_;
  const Drive drive_;
  mutable std::mutex mutex_;
  std::map<std::string, Channel> channels_;
  Renewal::Due due_;
  std::unique_ptr<Event> earlier_;  ///< set when something is due before the thread wakes
  TimePoint asleep_until_ = TimePoint::min();  ///< it is awake
  std::jthread thread_;                        ///< last: joined before what it uses goes
};

}  // namespace lockbench
