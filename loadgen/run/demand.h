#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/workload.h"

namespace lockbench::loadgen {

/// Draws the key of a section: uniform, Zipf (key k, from 0, has the exact weight 1/(k+1)^skew), or
/// with a hot set. With skew it takes 8 bytes per key. Read-only after construction, so all clients
/// share it.
class KeyChooser {
 public:
  /// Throws std::invalid_argument unless there is a key, skew is finite and at least 0, and the hot
  /// keys are fewer than all keys and without skew.
  KeyChooser(int keys, double skew, std::optional<HotSet> hot = std::nullopt);

  /// The hot keys are the first ones at the load's start; each move makes the next ones hot.
  int pick(Random& random, Duration since_start = {}) const;

 private:
  int pick_hot(Random& random, Duration since_start) const;

  const int keys_;
  const std::optional<HotSet> hot_;
  std::vector<double> weights_;  ///< with skew: cumulative, by key
};

/// The work of one section: takes all these locks, holds them, gives them back, and then thinks.
struct Transaction {
  std::vector<Wanted> locks;  ///< different keys, at least one
  Duration hold{}, think{};
};

/// The locks that a run's sections request: drawn as the workload says, or read from a trace in its
/// order, each transaction for the next client that asks. One per run. Thread-safe.
class Demand {
 public:
  /// Of a trace, only this share's transactions. The error is one line.
  static tl::expected<std::unique_ptr<Demand>, std::string> make(const Workload& workload,
                                                                 const Share& share = {});

  /// Sets `out` to the client's next transaction, which begins `since_start` after the load. `out`
  /// is reused, so that nothing is allocated in the long run; `random` is the client's own. False,
  /// from then on, if there is none. Does not wait.
  bool next(int client, Duration since_start, Random& random, Transaction& out);

 private:
  Demand(const Workload& workload, const Share& share);

  void draw(int client, Duration since_start, Random& random, std::vector<Wanted>& locks) const;

  const Workload& workload_;
  const Share share_;
  const KeyChooser keys_;
  TraceLocks trace_;                     ///< empty if locks are drawn
  std::atomic<std::uint64_t> begun_{0};  ///< of the trace, by all shares
};

/// Intended starts of the sections of an open loop, shared by all clients: the next free client
/// takes the next start, and the n-th is the same for any client. Each process of a run draws the
/// whole schedule and takes its share, so that together they have the starts of a single process.
/// Thread-safe.
class Schedule {
 public:
  /// Throws std::invalid_argument unless `per_second` is above 0 and finite. Constant spacing
  /// begins at `start`; with Poisson arrivals the first section comes a random gap later. The share
  /// must have a client.
  Schedule(double per_second, Arrival arrival, TimePoint start, std::uint64_t seed,
           const Share& share = {});

  /// Never earlier than the previous one; in the past if the clients are late.
  TimePoint next();

  /// Whether no more starts before `until` will come. Issues none.
  bool has_passed(TimePoint until) const;

  struct Due {
    std::uint64_t count = 0;
    Duration longest{};  ///< since the first of these
  };
  /// The remaining starts before `until`, which the schedule then no longer issues. Counted by
  /// their rate beyond the first, as there may be billions.
  Due due_before(TimePoint until);

 private:
  const double per_second_;
  const Arrival arrival_;
  const TimePoint start_;
  const Share share_;
  struct State {
    Random random;
    std::uint64_t issued = 0;
    double elapsed_gaps = 0;  ///< sum of Poisson gaps, each in units of the mean gap
  };
  TimePoint draw(State& state) const;

  mutable std::mutex mutex_;
  State state_;
};

/// Makes two clients meet at a lock at intervals: while one holds it, its rival is called, requests
/// the lock and waits. The locks take turns, one at a time, so that the others are free for the
/// rest of the load. Thread-safe.
class Meetings {
 public:
  /// `every`: the least time between the beginnings of two meetings.
  Meetings(int locks, Duration every) : every_(every), called_(static_cast<std::size_t>(locks)) {}

  /// Registers the lock's rival, which `event` calls; null when the rival has ended.
  void expect(int lock, Event* event);

  /// Whether the section of this lock that begins now is a meeting; if so, end() must follow.
  bool begin(int lock, TimePoint now);
  /// Calls the rival: the lock is held until about `until`.
  void call(int lock, TimePoint until);
  void end();

  /// The end of the hold for which the lock's rival was last called.
  TimePoint held_until(int lock) const;

 private:
  struct Called {
    Event* rival = nullptr;
    TimePoint until = TimePoint::min();
  };

  const Duration every_;
  mutable std::mutex mutex_;
  std::vector<Called> called_;
  std::size_t turn_ = 0;
  bool under_way_ = false;
  TimePoint next_ = TimePoint::min();
};

}  // namespace lockbench::loadgen
