#pragma once

#include "loadgen/run/fault.h"
#include "loadgen/run/runner.h"
#include "results/file/model.h"

namespace lockbench::loadgen {

struct RunShared;

/// Is notified of every run. Called on the runner's thread (several threads if runners work in
/// parallel); must return soon.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  /// Clients are about to connect. `run` may be read on any thread until run_ends() has returned.
  virtual void run_begins(const RunShared& run) = 0;
  /// All clients have ended. `result` holds the figures so far, including the audit's; null if the
  /// run could not start.
  virtual void run_ends(const RunShared& run, const results::Run* result) = 0;
  /// A fault takes effect or is healed. Called on the fault player's thread.
  virtual void fault_changes(const RunShared& /*run*/, FaultKind /*fault*/, bool /*active*/) {}
};

/// Tells the watcher, if there is one, that a run begins and, however it ends, that it ends.
class WatchedRun {
 public:
  WatchedRun(RunWatcher* watcher, const RunShared& run) : watcher_(watcher), run_(run) {
    if (watcher_ != nullptr) watcher_->run_begins(run_);
  }
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;
  ~WatchedRun() { end(nullptr); }

  void end(const results::Run* result) {
    if (watcher_ != nullptr) watcher_->run_ends(run_, result);
    watcher_ = nullptr;
  }

 private:
  RunWatcher* watcher_;
  const RunShared& run_;
};

}  // namespace lockbench::loadgen
