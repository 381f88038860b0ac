#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>

#include "loadgen/record/audit.h"
#include "loadgen/record/counter.h"
#include "loadgen/record/handoff.h"
#include "loadgen/record/metered_env.h"
#include "loadgen/record/recorder.h"
#include "loadgen/run/key_chooser.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/schedule.h"
#include "loadgen/run/workload.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

/// What the clients of one run share. Everything in it is thread-safe, or not written while they
/// run.
struct RunShared {
  const Descriptor& strategy;
  const Workload& workload;
  const Endpoints& endpoints;
  std::string key_prefix;  ///< of every lock; the key's number and a brace follow
  std::uint64_t nonce;     ///< keeps this run's randomness apart from every other's
  std::uint64_t seed;  ///< of what the clients do: the same for all strategies, not for repetitions
  EnvFactory make_env;

  Recorder recorder;
  Services services;  ///< after the recorder, which they may write to as long as they live
  Audit audit;
  HandoffTracker handoff;
  KeyChooser keys;
  std::unique_ptr<Counter> counter;
  std::unique_ptr<Schedule> schedule;  ///< open loop only; made when the load starts

  TimePoint load_start{}, measure_start{}, load_end{};
  std::atomic<bool> started{false};                 ///< these times are set
  std::atomic<std::uint64_t> measured_sections{0};  ///< begun, with a bound on iterations
  std::atomic<std::uint64_t> ended_sections{0};     ///< of those
  /// Ends the run, whoever asks for it: no section begins and no wait goes on, but what is under
  /// way gets its answer, as thousands of lost answers at the end of each run would be the tool's
  /// own doing.
  std::stop_source over;
  /// Follows when that takes too long: answers are not waited for any more.
  std::stop_source abort;

  std::string key(int number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// One client: its thread's loop from intended start to release.
class Worker {
 public:
  Worker(RunShared& run, int number);

  /// Reaches the stores.
  StoreResult<void> connect();
  /// Works until the run is stopped or its iterations are used up.
  void work();

 private:
  /// Nothing when the run is over.
  std::optional<TimePoint> next_start();
  /// Counts a section that is too late to be made up for.
  void shed(TimePoint intended, TimePoint now);
  void section(TimePoint intended);
  /// With a bound on iterations: takes one, if there is one left...
  bool take_iteration();
  /// ...and ends it, and with the last one the run; or gives it back, if no section came of it.
  void end_iteration(bool used_up);
  Mode pick_mode();
  /// Inside the lock: reads the counter, holds, writes it back unless others share the lock.
  /// Returns when it was left.
  TimePoint critical_section(int key, const Lease& lease, AcquireMark mark, TimePoint granted_at);
  void release(int key, const Lease& lease, TimePoint left_at);
  Phase phase_of(AcquireOutcome outcome, TimePoint ended) const;
  void note_wait(const AcquireResult& result, const Effort& spent, TimePoint intended,
                 TimePoint started, TimePoint ended);
  void note_loss(const Lease& lease, TimePoint learned_at);
  /// A store that is down must not be asked in a tight loop.
  void pause_after_failure(bool failed);
  bool over() const { return over_.stop_requested(); }
  Recorder::Histograms& histograms() { return run_.recorder.histograms(phase_); }

  RunShared& run_;
  const int number_;
  const std::stop_token over_;
  std::unique_ptr<Env> world_;
  MeteredEnv env_;
  std::unique_ptr<LockStrategy> strategy_;
  std::unique_ptr<CounterSession> counter_;
  ClientRecord& record_;
  std::mt19937_64 random_;
  std::string key_name_;
  AcquireRequest request_;  ///< one for all, as copying a stop token touches what all clients share
  std::uint32_t failures_in_a_row_ = 0;
  Phase phase_ = Phase::unmeasured;  ///< of the section under way: that in which its wait ended
  Counts counts_;                    ///< of the section under way
};

}  // namespace lockbench::loadgen
