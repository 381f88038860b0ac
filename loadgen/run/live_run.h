#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/certificate.h"
#include "loadgen/record/summary.h"
#include "loadgen/run/fault_player.h"
#include "loadgen/run/housekeeping.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/thread.h"
#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

/// One strategy under one workload, from connecting to the last release.
class LiveRun {
 public:
  /// `progress` names the run to the observer. A stop of `external` ends the run early.
  LiveRun(const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
          ProgressObserver& observer, std::stop_token external);

  /// Blocks until the run is over and its keys are removed. The error says why it could not start.
  tl::expected<results::Run, std::string> execute();

 private:
  class Watch;

  /// What a client's thread does.
  void client_body(int number);
  tl::expected<void, std::string> make_counter();
  tl::expected<void, std::string> start_clients();
  /// Waits until every client is connected or one has failed.
  tl::expected<void, std::string> await_connected();
  void open_gate();
  bool iterations_used_up() const;
  /// From the start of the load to its end; samples at least one point. Returns when the measured
  /// part ended.
  TimePoint drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series);
  /// Lets the clients finish what is under way, for a bounded time, and ends their threads.
  void drain();
  void report_load(TimePoint now, bool over);
  void report(Progress::Phase phase, double done);
  /// When the series gets its next point.
  TimePoint sample_after(TimePoint sampled_at) const;
  /// Open loop: sections that were due and that no client took count as abandoned.
  void count_never_begun(TimePoint until);
  /// By how much the time of day is ahead of the monotonic clock: constant, unless one is set.
  Duration wall_clock_offset();
  /// Ends the faults, and tells what they did.
  void end_faults(results::Run& result);
  bool restarts_expected() const;
  void complete_evidence(RunEvidence& evidence) const;
  void remove_keys();

  const RunPlan& plan_;
  const int repetition_;
  Progress progress_;
  ProgressObserver& observer_;
  const std::stop_token external_;

  std::unique_ptr<Env> env_;
  RunShared run_;
  Housekeeping housekeeping_;

  // How the runner and its clients find each other.
  std::mutex mutex_;
  std::condition_variable_any changed_;  ///< the runner waits for it, and nobody else
  int connected_ = 0, working_ = 0;
  std::string connect_error_;
  std::atomic<bool> gate_open_{false};  ///< the clients wait for it
  std::vector<SmallThread> threads_;    ///< joined before anything they use goes
  std::optional<HistogramSnapshot> lag_before_faults_;
  std::unique_ptr<FaultPlayer> faults_;  ///< last: healed before the clients are waited for
};

}  // namespace lockbench::loadgen
