#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loadgen/record/audit.h"
#include "simulate/lock_view.h"
#include "simulate/simulation.h"
#include "strategies/lock_strategy.h"

namespace lockbench::simulate {

/// What a lock must not do, whatever the order of events.
enum class Oracle {
  overlap,       ///< a grant while another client is inside and believes that its lease is valid
  lost_update,   ///< at a resource that checks fencing numbers, if the lock has some
  fencing,       ///< a number that is not above those granted before the request
  liveness,      ///< a free lock is not granted
  left_behind,   ///< keys in the store after all releases, or after all TTLs
  late_renewal,  ///< a renewal of a lock that its client does not hold
  lost_lease,  ///< a renewed lease ends during the hold, though nothing went wrong since its grant
};
std::string_view to_string(Oracle oracle);

struct Finding {
  Oracle oracle = Oracle::overlap;
  std::string what;
};

/// What the judge must know of the load.
struct Terms {
  int clients = 1, keys = 1;
  Duration longest_ttl{}, timeout{};  ///< the longest wait for one answer
  Duration slack{};                   ///< how much longer a lock is kept by stepped clocks
  bool renewed = false;               ///< all leases are
};

/// Watches all locks of one simulation, and ends it at the first finding. What the strategy
/// declares for a fault that has struck is none.
class Judge final : public Watcher {
 public:
  Judge(const Descriptor& strategy, Terms terms, std::stop_source found)
      : strategy_(strategy),
        terms_(terms),
        found_(std::move(found)),
        audit_(terms.keys, TimePoint{}),
        locks_(static_cast<std::size_t>(terms.keys)) {}

  const std::optional<Finding>& finding() const { return finding_; }

  // What clients do with the locks. `name`: the lock's, in its database.
  void asks(int client, int key, const std::string& name);
  void gave_up(int client, int key, AcquireOutcome outcome);
  void granted(int client, int key, const Lease& lease);
  /// Before the release.
  void leaves(int client, int key);
  void released(int client, int key, ReleaseOutcome outcome);
  /// It has died with the lock.
  void died(int client, int key);
  /// A service of the client is about to send a command for this key.
  void serves(int client, std::string_view name, std::string_view command);

  void begins(World& world) override { world_ = &world; }
  void struck(Disturbance kind, TimePoint until) override;
  std::unique_ptr<Env> watch_service(int client, std::unique_ptr<Env> env) override;
  void ended(const Nodes& nodes) override;

 private:
  struct Claim {
    std::string name;
    loadgen::AcquireMark mark{};
    Mode mode = Mode::exclusive;
    std::shared_ptr<const LeaseState> lease{};  ///< null: it waits
    TimePoint since{};
    std::optional<std::uint64_t> fencing{};
    std::uint64_t seen = 0;  ///< version of the resource
    bool calm = false;       ///< no fault was in force when it left

    bool valid_at(TimePoint now) const { return lease && lease->valid_at(now); }
  };
  struct Lock {
    LockView view;
    std::string name;                        ///< empty: nobody has asked for it
    std::uint64_t version = 0, highest = 0;  ///< of the resource; of the numbers that it has seen
    bool believed = true;                    ///< its last writer believed that it held the lock
    bool released = false;  ///< the last holder has released it, with nothing in the way
    /// Until then the store may keep it for a client that has not released it. A later exclusive
    /// grant shows that it does not.
    TimePoint kept_until = TimePoint::min();
  };

  TimePoint now() const { return world_->now(); }
  Lock& lock(int key) { return locks_[static_cast<std::size_t>(key)]; }
  void write(int client, int key, const Claim& claim);
  void check_overlap(int client, int key, const Claim& entering);
  void check_free(int key);
  /// A client may be gone without having released the lock.
  void may_be_kept(int key);
  /// Whether a key of this name, if it exists, is a lock that nobody has.
  bool is_released(const std::string& name) const;
  /// Whether nothing has gone wrong since then, nor shortly before.
  bool calm_since(TimePoint since) const;
  /// Whether a fault that has struck, or a lease that ended early, has one of these outcomes.
  bool declared(unsigned harms) const;
  void find(Oracle oracle, unsigned harms, std::string what);

  const Descriptor& strategy_;
  const Terms terms_;
  std::stop_source found_;
  World* world_ = nullptr;  ///< once it has begun
  loadgen::Audit audit_;    ///< of the fencing numbers
  std::vector<Lock> locks_;
  std::map<std::pair<int, int>, Claim> claims_;         ///< by client and key
  std::set<std::pair<int, std::string>> once_claimed_;  ///< by client and name
  /// By client and name: whether it held the lock when a service of it read the key last.
  std::map<std::pair<int, std::string>, bool> reads_;
  unsigned struck_ = 0;  ///< bits of the kinds so far
  TimePoint troubled_until_ = TimePoint::min();
  bool overran_ = false;  ///< a lease has ended before its release had
  std::optional<Finding> finding_;
};

}  // namespace lockbench::simulate
