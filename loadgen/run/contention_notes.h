#pragma once

#include <vector>

#include "loadgen/record/handoff.h"
#include "loadgen/record/lock_log.h"
#include "loadgen/record/recorder.h"
#include "strategies/lease.h"

namespace lockbench::loadgen {

struct RunShared;

/// Notes of one client: when it waits for a lock, holds it and gives it back. They go to the run's
/// handoffs, or to its log where several processes share the run, since handoffs see only one.
class ContentionNotes {
 public:
  ContentionNotes(RunShared& run, int client) : run_(run), client_(client) {}

  struct Lock {
    int key = 0;
    Mode mode = Mode::exclusive;
  };
  struct Outcome {
    bool granted = false;
    bool found_taken = false;  ///< the lock was taken all the time
    Phase phase{};             ///< whose figures count it
  };

  /// Before a request for the lock.
  void waits(Lock lock, TimePoint started, Phase phase);
  /// The request ended.
  void waited(Lock lock, TimePoint intended, TimePoint ended, Outcome outcome, Counts& counts);
  /// Before a release. The release of a shared lock is no handoff: others may still hold it.
  void releases(Lock lock, TimePoint section_over, TimePoint begun, Phase phase);
  void released(Lock lock, TimePoint begun, TimePoint done, bool success, Phase phase,
                Counts& counts);

 private:
  void log(Lock lock, LockEvent event, Phase phase);
  void record_handoffs(Phase phase, Counts& counts);

  RunShared& run_;
  const int client_;
  WaitTicket wait_;
  bool awaited_ = false;           ///< a client waits for the release under way
  std::vector<Handoff> handoffs_;  ///< reused
};

}  // namespace lockbench::loadgen
