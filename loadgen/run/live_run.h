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
#include "loadgen/run/fault_player.h"
#include "loadgen/run/resource_meter.h"
#include "loadgen/run/run_stores.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/summary.h"
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
  tl::expected<void, std::string> make_counter();
  tl::expected<void, std::string> start_clients();
  /// The body of a client's thread.
  void run_client(int number);
  /// Waits until every client is connected or one has failed.
  tl::expected<void, std::string> await_connected();
  void open_gate();
  /// From the start of the load to its end; takes at least one sample for the series. Returns when
  /// the load ended.
  TimePoint drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series);
  void note_failures();
  bool warms_until_steady() const;
  void measure_from(TimePoint when);
  bool iterations_used_up() const;
  bool settled(TimePoint now) const;
  TimePoint next_sample_after(TimePoint sampled_at) const;
  void report_load(TimePoint now, bool over);
  void report(Progress::Phase phase, double done);
  void end_faults(results::Run& result);
  /// Lets the clients finish what is under way, for a bounded time, and ends their threads.
  void drain();
  /// Open loop: sections that were due and that no client began count as abandoned.
  void count_never_begun(TimePoint until);
  /// Time of day minus monotonic clock: constant, unless a clock is set.
  Duration wall_clock_offset();
  /// What a section cost the servers and the connections to them.
  void add_costs(const RunStores::Usage& usage, results::Run& result) const;
  RunEvidence evidence_of(const RunStores::Usage& usage, TimePoint ended_at) const;
  void remove_keys();

  const RunPlan& plan_;
  const int repetition_;
  Progress progress_;
  ProgressObserver& observer_;
  const std::stop_token external_;

  std::unique_ptr<Env> env_;
  RunShared run_;
  RunStores stores_;
  ResourceMeter resources_;

  std::mutex mutex_;                     ///< guards connected_, working_ and connect_error_
  std::condition_variable_any changed_;  ///< only the runner waits for it
  int connected_ = 0, working_ = 0;
  std::string connect_error_;
  std::atomic<bool> gate_open_{false};  ///< the clients wait for it
  std::vector<SmallThread> threads_;    ///< joined before anything they use is destroyed
  std::optional<HistogramSnapshot> lag_before_faults_;
  std::unique_ptr<FaultPlayer> faults_;  ///< last: heals before the clients are joined
};

}  // namespace lockbench::loadgen
