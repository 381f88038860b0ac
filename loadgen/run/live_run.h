#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/record/certificate.h"
#include "loadgen/run/client_threads.h"
#include "loadgen/run/crew.h"
#include "loadgen/run/fault_player.h"
#include "loadgen/run/resource_meter.h"
#include "loadgen/run/run_stores.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/summary.h"
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
  tl::expected<void, std::string> make_threads();
  tl::expected<void, std::string> connect_clients();
  /// From the start of the load to its end; takes at least one sample for the series. Returns when
  /// the load ended.
  TimePoint drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series);
  void note_failures();
  bool warms_until_steady() const;
  void measure_from(TimePoint when);
  /// A client ended the last section that the load has, and with it the run.
  bool all_done() const { return run_.over.stop_requested(); }
  bool settled(TimePoint now) const;
  /// Now, or where clients are elsewhere, as soon as they can know.
  void end_early(TimePoint now, bool& over);
  TimePoint next_sample_after(TimePoint sampled_at) const;
  void report_load(TimePoint now, bool over);
  void report(Progress::Phase phase, double done);
  void end_faults(results::Run& result);
  /// Time of day minus monotonic clock: constant, unless a clock is set.
  Duration wall_clock_offset();
  /// What a section cost the servers and the connections to them.
  void add_costs(const RunStores::Usage& usage, results::Run& result) const;
  /// Of the lock's servers; nothing if none of them tells.
  std::optional<double> server_cpu_seconds(const RunStores::Usage& usage) const;
  RunEvidence evidence_of(const RunStores::Usage& usage, TimePoint ended_at) const;
  /// Which figures are the generator's own, and what clients ran on.
  results::Generator generator_of(const RunEvidence& evidence) const;
  /// Removes what the run left in the stores, for a bounded time.
  void remove_keys();
  /// The command that removes what could not be removed.
  std::string clean_command() const;

  const RunPlan& plan_;
  const int repetition_;
  Progress progress_;
  ProgressObserver& observer_;
  const std::stop_token external_;

  std::unique_ptr<Env> env_;
  ClientThreads client_threads_;  ///< outlives the services, which may run there
  RunShared run_;
  RunStores stores_;
  ResourceMeter resources_;
  std::unique_ptr<Crew> crew_;  ///< ends before anything that clients use is destroyed
  std::optional<HistogramSnapshot> lag_before_faults_;
  std::unique_ptr<FaultPlayer> faults_;  ///< last: heals before the clients are joined
};

}  // namespace lockbench::loadgen
