#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "loadgen/record/memory.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

/// From the start of a release to the next grant to a client that was then waiting.
struct Handoff {
  TimePoint started{};
  Duration taken{};
  bool direct = false;         ///< no later client was granted the lock in between
  std::uint64_t releases = 1;  ///< represented by this one
};

/// One client's wait for a key.
struct WaitTicket {
  std::uint64_t number = 0;  ///< in the order of the key's events
  Mode mode = Mode::exclusive;
  bool contended = false;    ///< as in GrantNote, at the beginning
  bool held = false;         ///< another client held the lock then, in any mode
  std::uint64_t grants = 0;  ///< of the key until then
};

/// A grant's effect on waiting clients.
struct GrantNote {
  /// Another client held or wanted the lock in a conflicting mode when the wait began or ended.
  /// Grants to clients that share the lock say nothing about exclusion.
  bool contended = false;
  bool overtook = false;  ///< another client was waiting at a release before this wait began
  /// From the start of the latest release to this grant, if a client waited at that release.
  std::optional<Duration> turnaround{};
};

/// Follows each key's lock from hand to hand: which clients waited at a release, and which got the
/// lock next. Every release at which a client waited gives one handoff, however many others
/// overtook that client. The grant may be seen before the releasing client knows of its success;
/// the call that completes the pair reports the handoff. Thread-safe; keys from 0. Takes a key's
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
  /// The acquisition ended without a grant. Adds to `unserved` the waits of those releases for
  /// which no client waits any more.
  void gave_up(int key, const WaitTicket& wait, TimePoint now, std::vector<Duration>& unserved);

  /// Call before gave_up() if the lock was held for the whole wait. If no client of this run held
  /// it, it counts as stuck until the next grant.
  void found_taken(int key, const WaitTicket& wait);
  /// The number of stuck keys. Cheap.
  std::uint64_t stuck() const { return stuck_.load(std::memory_order_relaxed); }

  /// Call before the release is sent. A shared lock's release hands nothing on. Returns whether a
  /// client waits.
  bool release_started(int key, Mode mode, TimePoint started);
  /// Call for every started exclusive release when its answer is known, with the same `started`.
  void release_finished(int key, TimePoint started, bool success, std::vector<Handoff>& completed);

  /// How long each release without a following grant has waited, over all keys.
  std::vector<Duration> unserved(TimePoint now) const;

 private:
  /// A release at which a client waited.
  struct Release {
    std::uint64_t number = 0;
    TimePoint started;
    int waiting = 0;           ///< clients waiting since then
    std::uint64_t weight = 1;  ///< releases represented by this one
    bool confirmed = false;    ///< it succeeded
    bool overtaken = false;
    bool followed = false;  ///< by a grant to any client
    bool served = false;    ///< before its confirmation
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
