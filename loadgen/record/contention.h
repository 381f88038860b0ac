#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "loadgen/record/handoff.h"
#include "loadgen/record/lock_log.h"
#include "loadgen/record/recorder.h"

namespace lockbench::loadgen {

/// Passes what clients do with locks to the handoffs, and records what these say of it. For one
/// thread or fiber; several may share the handoffs and the recorder.
class Contention {
 public:
  /// Both must outlive it.
  Contention(HandoffTracker& handoffs, Recorder& recorder)
      : handoffs_(handoffs), recorder_(recorder) {}

  /// What a client has under way.
  struct Pending {
    std::optional<WaitTicket> wait{};
    std::optional<TimePoint> release{};  ///< its start, if another client waited then
  };

  /// The next event of a client. `add(Count, std::uint64_t)` adds to the counts of its phase.
  template <class Add>
  void follow(const LockEvent& event, Pending& pending, const Add& add) {
    completed_.clear();
    switch (event.kind) {
      case LockEvent::Kind::waits:
        pending.wait = handoffs_.begin_wait(event.key, event.mode);
        break;
      case LockEvent::Kind::granted:
        granted(event, pending, add);
        break;
      case LockEvent::Kind::gave_up:
        gave_up(event, pending);
        break;
      case LockEvent::Kind::releases:
        // The release of a shared lock is no handoff: others may still hold it.
        pending.release.reset();
        if (handoffs_.release_started(event.key, event.mode, event.at)) pending.release = event.at;
        break;
      case LockEvent::Kind::released:
        if (!pending.release) break;
        handoffs_.release_finished(event.key, *std::exchange(pending.release, {}), event.flag,
                                   completed_);
        if (event.flag) add(Count::awaited_releases, 1);
        break;
    }
    for (const Handoff& handoff : completed_) {
      ShardedHistogram& histogram = recorder_.histograms(event.phase)[Timing::handoff];
      for (std::uint64_t i = 0; i < handoff.releases; ++i) histogram.record(handoff.taken);
      if (handoff.direct) add(Count::direct_handoffs, handoff.releases);
    }
  }

 private:
  template <class Add>
  void granted(const LockEvent& event, Pending& pending, const Add& add) {
    if (!pending.wait) return;
    const GrantNote note =
        handoffs_.granted(event.key, *std::exchange(pending.wait, {}), event.at, completed_);
    auto& histograms = recorder_.histograms(event.phase);
    if (note.contended) {
      add(Count::contended_grants, 1);
    } else {
      histograms[Timing::uncontended].record(event.span);
    }
    if (note.overtook) add(Count::overtakings, 1);
    if (note.turnaround) histograms[Timing::turnaround].record(*note.turnaround);
  }

  void gave_up(const LockEvent& event, Pending& pending) {
    if (!pending.wait) return;
    const WaitTicket wait = *std::exchange(pending.wait, {});
    if (event.flag) handoffs_.found_taken(event.key, wait);
    std::vector<Duration> unserved;
    handoffs_.gave_up(event.key, wait, event.at, unserved);
    auto& cut = recorder_.histograms(event.phase)[Timing::handoff_cut];
    for (const Duration waited : unserved) cut.record(waited);
  }

  HandoffTracker& handoffs_;
  Recorder& recorder_;
  std::vector<Handoff> completed_;  ///< reused
};

}  // namespace lockbench::loadgen
