#pragma once

#include "loadgen/run/fault.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

struct RunShared;

/// Sees every run while it is under way. Called on the runner's thread, or threads where several
/// runners work side by side; must return soon.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  /// Clients are about to connect. What the run's clients share may be read on any thread, until
  /// run_ends() has returned.
  virtual void run_begins(const RunShared& run) = 0;
  /// No client works any more. `result` holds the figures so far, the audit's among them; null if
  /// the run could not start.
  virtual void run_ends(const RunShared& run, const results::Run* result) = 0;
  /// A fault strikes, or is healed, in between. Called on a thread of the run's faults.
  virtual void fault_changes(const RunShared& /*run*/, FaultKind /*fault*/, bool /*active*/) {}
};

}  // namespace lockbench::loadgen
