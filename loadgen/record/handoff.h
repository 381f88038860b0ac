#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loadgen/record/atomics.h"
#include "loadgen/record/per_key.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

/// From the start of a release to the next grant to a client that was waiting when it began.
struct Handoff {
  Duration taken{};
  bool direct = false;         ///< no client that came later was granted the lock in between
  std::uint64_t releases = 1;  ///< that this one stands for
};

/// One client's wait for a key.
struct WaitTicket {
  std::uint64_t number = 0;  ///< of the key's events in their order
  Mode mode = Mode::exclusive;
  bool contended = false;    ///< as in GrantNote, when it began
  bool held = false;         ///< another client held the lock then, in whatever mode
  std::uint64_t grants = 0;  ///< of the key until then
};

/// What a grant means to the clients that waited.
struct GrantNote {
  /// Another client held or wanted the lock in a conflicting mode when the wait began or ended. Two
  /// shared ones do not conflict, so their grants say nothing of exclusion.
  bool contended = false;
  bool overtook = false;  ///< another client was waiting at a release before this wait began
  /// From the start of the latest release to this grant, if a client waited at that release.
  std::optional<Duration> turnaround{};
};

/// Follows each key's lock from hand to hand: which clients waited at a release, and which got the
/// lock next. Every release at which a client waited gives one handoff, however many clients
/// overtook that one. The grant may be seen before the releasing client knows that it succeeded;
/// whichever call completes the pair reports the handoff. Thread-safe; keys from 0. Takes a key's
/// mutex for a moment, which only the clients of that key share.
class HandoffTracker {
 public:
  explicit HandoffTracker(int keys) : slots_(keys) {}

  /// Around every acquisition: begin before its start is timed, and one of granted() and gave_up()
  /// when it ends.
  WaitTicket begin_wait(int key, Mode mode = Mode::exclusive);
  /// Call right after a grant. Adds the handoffs that it completes to `completed`.
  GrantNote granted(int key, const WaitTicket& wait, TimePoint granted_at,
                    std::vector<Handoff>& completed);
  /// The acquisition ended without a grant. Adds to `unserved` how long the releases have waited
  /// for which nobody waits any more.
  void gave_up(int key, const WaitTicket& wait, TimePoint now, std::vector<Duration>& unserved);

  /// Call before gave_up() if the lock was taken all the time. It counts as stuck if no client of
  /// this run held it meanwhile, until one is granted it.
  void found_taken(int key, const WaitTicket& wait);
  /// How many keys are stuck. Cheap.
  std::uint64_t stuck() const { return stuck_.load(std::memory_order_relaxed); }

  /// Call before the release is sent; that of a shared lock hands nothing on. Returns whether a
  /// client waits.
  bool release_started(int key, Mode mode, TimePoint started);
  /// Call when its answer is known, with the same `started`, for every exclusive release that
  /// began.
  void release_finished(int key, TimePoint started, bool success, std::vector<Handoff>& completed);

  /// How long each release that nobody took up has waited, over all keys.
  std::vector<Duration> unserved(TimePoint now) const;

 private:
  /// A release at which a client waited.
  struct Release {
    std::uint64_t number = 0;
    TimePoint started;
    int waiting = 0;           ///< clients that waited then and still do
    std::uint64_t weight = 1;  ///< releases that this one stands for
    bool confirmed = false;    ///< it succeeded
    bool overtaken = false;
    bool followed = false;  ///< by a grant, to whomever
    bool served = false;    ///< though not confirmed yet
    TimePoint served_at{};
  };
  struct ByMode {
    int exclusive = 0, shared = 0;

    int& operator[](Mode mode) { return mode == Mode::shared ? shared : exclusive; }
    int all() const { return exclusive + shared; }
    int in_conflict_with(Mode mode) const { return mode == Mode::shared ? exclusive : all(); }
  };
  struct alignas(kCacheLine) Slot {
    mutable std::mutex mutex;
    ByMode waiters, holders;
    std::uint64_t events = 0, grants = 0;
    bool stuck = false;
    std::unique_ptr<std::vector<Release>> releases;  ///< the oldest first; null for most keys
  };

  static void thin_out(std::vector<Release>& releases);

  PerKey<Slot> slots_;
  std::atomic<std::uint64_t> stuck_{0};
};

}  // namespace lockbench::loadgen
