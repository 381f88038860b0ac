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
#include "loadgen/run/meetings.h"
#include "loadgen/run/runner.h"
#include "loadgen/run/schedule.h"
#include "loadgen/run/workload.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

/// State that the clients of one run share. Each member is thread-safe, or not written while
/// clients run.
struct RunShared {
  const Descriptor& strategy;
  const Workload& workload;
  const Endpoints& endpoints;
  std::string key_prefix;  ///< of every lock; the key's number and a closing brace follow
  std::uint64_t nonce;     ///< seeds what must differ between runs, such as lock tokens
  std::uint64_t seed;      ///< of the load: the same for all strategies, different for repetitions
  EnvFactory make_env;

  Recorder recorder;
  Services services;  ///< after the recorder, which they write to as long as they live
  Audit audit;
  HandoffTracker handoff;
  KeyChooser keys;
  std::unique_ptr<Counter> counter;
  std::unique_ptr<Schedule> schedule;    ///< open loop only; made when the load starts
  std::unique_ptr<Meetings> meetings{};  ///< of a canary's load only

  TimePoint load_start{};
  /// Set before the load starts; once moved to an earlier time if the warm-up is over before its
  /// latest end.
  std::atomic<TimePoint> measure_start{}, load_end{};
  std::atomic<bool> started{false};                 ///< the times above are set
  std::atomic<std::uint64_t> measured_sections{0};  ///< begun; only with a limit on iterations
  std::atomic<std::uint64_t> ended_sections{0};     ///< those of them that ended
  /// Ends the run: no section begins and waits stop, but commands under way still get their
  /// answers. Otherwise every run would end with thousands of lost answers that the tool itself
  /// causes.
  std::stop_source over;
  /// Requested when that takes too long: clients stop waiting for answers.
  std::stop_source abort;

  std::string key(int number) const { return key_prefix + std::to_string(number) + "}"; }
};

/// One client. Its thread repeats sections, from the intended start to the release.
class Worker {
 public:
  Worker(RunShared& run, int number);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Connects to the stores, and uses each connection once: scripts are loaded then, and plans
  /// made.
  StoreResult<void> connect();
  /// Works until the run is stopped or its iterations are used up.
  void work();

 private:
  void note_command(std::string_view command, Duration taken);
  /// Takes and gives back a lock that no other client wants.
  void use_once();
  /// Waits for the next intended start. Nothing: the run is over.
  std::optional<TimePoint> next_start();
  /// The same for a rival, which starts when it is called.
  std::optional<TimePoint> next_call();
  bool is_rival() const { return call_ != nullptr; }
  /// Counts a section as abandoned that is later than `longest_lag`.
  void shed(TimePoint intended, TimePoint now);
  void section(TimePoint intended);
  int pick_key();
  /// How long a request waits that starts now.
  TimePoint deadline_of(int key, TimePoint started) const;
  /// With a limit on iterations: takes one if any is left.
  bool take_iteration();
  /// Ends the iteration, and with the last one the run. Returns an unused one to the others.
  void end_iteration(bool used_up);
  Mode pick_mode();
  /// Inside the lock: reads the counter, holds, and writes it back unless the lock is shared.
  /// Returns the time of leaving.
  TimePoint critical_section(int key, const Lease& lease, AcquireMark mark, TimePoint granted_at);
  void release(int key, const Lease& lease, TimePoint left_at);
  Phase phase_of_wait(TimePoint ended) const;
  Phase phase_of(AcquireOutcome outcome, TimePoint ended) const;
  void note_wait(const AcquireResult& result, const Effort& spent, TimePoint intended,
                 TimePoint started, TimePoint ended);
  /// Why the lock was not granted; nothing if it was, or if the end of the run cut the wait off.
  std::optional<FailureReason> failure_of(const AcquireResult& result, TimePoint started) const;
  /// The acquisition ended: who waited, who was overtaken.
  void note_handoffs(int key, bool granted, TimePoint intended, TimePoint ended);
  void record_handoffs();
  void note_loss(const Lease& lease, TimePoint learned_at);
  /// Keeps clients from asking a failed store in a tight loop.
  void pause_after_failure(bool failed);
  bool over() const { return over_.stop_requested(); }
  Recorder::Histograms& histograms() { return run_.recorder.histograms(phase_); }

  RunShared& run_;
  const int number_;
  const std::stop_token over_;
  std::unique_ptr<Env> base_env_;
  std::vector<std::pair<std::string, ShardedHistogram*>> commands_;  ///< used before
  MeteredEnv env_;
  std::unique_ptr<LockStrategy> strategy_;
  std::unique_ptr<CounterSession> counter_;
  ClientRecord& record_;
  std::mt19937_64 random_;
  std::string key_name_;
  AcquireRequest request_;  ///< reused: copying a stop token writes to memory that clients share
  std::unique_ptr<Event> call_;           ///< of a rival only
  bool meets_ = false;                    ///< in the current section
  std::optional<FailureReason> failure_;  ///< of the latest section
  std::uint32_t failures_in_a_row_ = 0;
  Phase phase_ = Phase::unmeasured;  ///< of the current section: that in which its wait ended
  Counts counts_;                    ///< of the current section
  WaitTicket wait_;                  ///< of the current section
  std::vector<Handoff> handoffs_;    ///< reused
};

}  // namespace lockbench::loadgen
