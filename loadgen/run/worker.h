#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "loadgen/fibers/scheduler.h"
#include "loadgen/record/audit.h"
#include "loadgen/record/counter.h"
#include "loadgen/record/handoff.h"
#include "loadgen/record/metered_env.h"
#include "loadgen/record/recorder.h"
#include "loadgen/run/demand.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/runner.h"
#include "strategies/env.h"
#include "strategies/fair_queue.h"
#include "strategies/lease.h"
#include "strategies/services.h"

namespace lockbench::program {
class ProgramLock;
}

namespace lockbench::loadgen {

/// The used keys of a run, so that only these are removed at its end. Thread-safe.
class UsedKeys {
 public:
  explicit UsedKeys(int keys) : used_(static_cast<std::size_t>(keys)) {}

  void mark(int key) noexcept {
    std::atomic<bool>& used = used_[static_cast<std::size_t>(key)];
    // Mostly set already: then it writes nothing to memory that clients share.
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }

  /// In ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t key = 0; key < used_.size(); ++key) {
      if (used_[key].load(std::memory_order_relaxed)) visit(static_cast<int>(key));
    }
  }

  bool none() const {
    return std::none_of(used_.begin(), used_.end(), [](const auto& used) { return used.load(); });
  }

 private:
  std::vector<std::atomic<bool>> used_;
};

/// The machines of a run's clients, which see what these do with their locks. By default all
/// clients share a process. Called on the clients' threads.
class ClientHosts {
 public:
  virtual ~ClientHosts() = default;

  virtual std::unique_ptr<Env> make_env(const RunShared& run, int client, std::uint64_t seed);
  /// Of a client in a process of its own; null: it shares the run's.
  virtual std::unique_ptr<Services> make_services(RunShared& /*run*/, int /*client*/,
                                                  std::uint64_t /*seed*/) {
    return nullptr;
  }
  /// Its process has died; false again once another one may take its place.
  virtual bool is_dead(int /*client*/) const { return false; }

  /// It begins to wait for the lock of this key.
  virtual void asks(int /*client*/, int /*key*/) {}
  /// It was granted the lock at last, `waited` after its intended start, and is to hold it for
  /// `hold`.
  virtual void granted(int /*client*/, int /*key*/, const Lease& /*lease*/, Duration /*waited*/,
                       Duration /*hold*/) {}
  virtual void gave_up(int /*client*/, int /*key*/) {}
  /// It is about to release the lock, or has died with it.
  virtual void leaves(int /*client*/, int /*key*/) {}

  static ClientHosts& one_process() {
    static ClientHosts all;
    return all;
  }
};

/// The client that faults of clients strike, as if it was a process of its own: it has services of
/// its own, which stand still and die with it. Struck while it holds a lock, as in the plays of
/// hazards. Thread-safe.
class Victim final : public ClientHosts {
 public:
  static constexpr int kClient = 0;  ///< its number

  /// Strikes when the client is next granted a lock, and then sets `struck`.
  void arm(const Fault& fault, Event& struck) {
    const std::scoped_lock lock(mutex_);
    armed_ = &fault;
    struck_ = &struck;
  }
  void disarm() {
    const std::scoped_lock lock(mutex_);
    armed_ = nullptr;
  }

  /// Called by the client that holds a lock. The fault that strikes it now; nothing: none.
  std::optional<FaultKind> strike(TimePoint now) {
    const std::scoped_lock lock(mutex_);
    if (armed_ == nullptr) return std::nullopt;
    const Fault& fault = *std::exchange(armed_, nullptr);
    if (fault.kind == FaultKind::client_kill) dead_ = true;
    if (fault.kind == FaultKind::client_pause) paused_until_ = now + *fault.lasts;
    struck_->set();
    return fault.kind;
  }

  std::unique_ptr<Env> make_env(const RunShared& run, int client, std::uint64_t seed) override;
  std::unique_ptr<Services> make_services(RunShared& run, int client, std::uint64_t seed) override;
  bool is_dead(int client) const override { return client == kClient && dead_; }
  /// Another process takes the dead one's place.
  void replace() { dead_ = false; }
  TimePoint paused_until() const { return paused_until_; }

 private:
  std::mutex mutex_;
  const Fault* armed_ = nullptr;
  Event* struck_ = nullptr;
  std::atomic<bool> dead_{false};
  std::atomic<TimePoint> paused_until_{TimePoint::min()};
};

/// The Env of the victim, or of one of its services. What is paused sends nothing and goes on from
/// its wait afterwards. What is dead sends nothing, so its connections close without a word.
class VictimEnv : public ForwardingEnv {
 public:
  VictimEnv(const Victim& victim, std::unique_ptr<Env> inner)
      : ForwardingEnv(std::move(inner)), victim_(victim) {}

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    const WaitResult result = ForwardingEnv::wait(event, deadline, stop);
    if (result == WaitResult::stopped || now() >= victim_.paused_until()) return result;
    const WaitResult paused = ForwardingEnv::wait(nullptr, victim_.paused_until(), stop);
    return paused == WaitResult::stopped ? paused : result;
  }

  // Services must not wait here.
  CommandFate before_command(const CommandInfo& command) override {
    const bool silent = victim_.is_dead(Victim::kClient) || now() < victim_.paused_until();
    return silent ? CommandFate::drop : ForwardingEnv::before_command(command);
  }

 private:
  const Victim& victim_;
};

/// State that the clients of one run share. Each member is thread-safe, or not written while
/// clients run.
struct RunShared {
  const Descriptor& strategy;
  const Workload& workload;
  const Endpoints& endpoints;
  std::string key_prefix;  ///< of every lock; the key's number and a closing brace follow
  std::uint64_t nonce;     ///< seeds values that must differ between runs, such as lock tokens
  std::uint64_t seed;      ///< of the load: the same for all strategies, different for repetitions
  EnvFactory make_env;

  TimePoint load_start{};
  /// The measured window. Set before the load starts; its end moves to an earlier time if the load
  /// ends early. Then clients go on as before, unmeasured, until the waits that belong to the
  /// window have ended: if idle clients left, the last waits would be those of another load.
  std::atomic<TimePoint> measure_start{}, measure_end{};
  std::atomic<bool> started{false};  ///< the times above are set

  Recorder recorder;
  /// Of the clients; null if the runner itself is a fiber: clients then run beside it. They read
  /// the times and write to the recorder until their end, so both come before them.
  std::unique_ptr<fibers::Pool> threads{};
  Services services{};  ///< run on the threads and write to the recorder, until their end
  Audit audit;
  HandoffTracker handoff;
  UsedKeys used;  ///< of the load, and then one more for each client
  std::unique_ptr<Demand> demand{};
  std::unique_ptr<Counter> counter{};
  std::unique_ptr<Schedule> schedule{};  ///< open loop only; made when the load starts
  std::unique_ptr<Meetings> meetings{};  ///< of a canary's load only
  std::unique_ptr<Victim> victim{};      ///< of a run with faults of clients only; its hosts
  /// The connection pool of the application, of which only the waiting is simulated; null: none.
  std::unique_ptr<FairQueue> pool{};
  ClientHosts* hosts = &ClientHosts::one_process();
  Share share{};                    ///< of the clients, which are numbered over all shares
  history::Log* history = nullptr;  ///< may be null

  /// Set just before `over` cuts off the waits that are left.
  std::atomic<TimePoint> load_end{TimePoint::max()};
  std::atomic<bool> demand_met{false};  ///< there is nothing left to do
  /// Begun; only with a limit on iterations. Not in the cache line of the times, which all clients
  /// read.
  alignas(kCacheLine) std::atomic<std::uint64_t> measured_sections{0};
  std::atomic<std::uint64_t> ended_sections{0};  ///< of these
  std::atomic<std::uint64_t> ended_of_trace{0};
  /// Ends the run: no section begins and waits stop, but commands under way still get their
  /// answers. Otherwise every run would end with thousands of answers lost by the tool itself.
  std::stop_source over;
  /// Requested if this takes too long: clients stop waiting for answers.
  std::stop_source abort;

  Phase phase_at(TimePoint time) const {
    if (time < measure_start.load(std::memory_order_relaxed)) return Phase::unmeasured;
    const bool measured = time < measure_end.load(std::memory_order_relaxed);
    return measured ? Phase::measured : Phase::ending;
  }

  /// Whether the load asks for no more sections.
  bool nothing_left() const {
    const auto begun = measured_sections.load(std::memory_order_relaxed);
    return demand_met.load() || (workload.iterations && begun >= *workload.iterations);
  }

  std::string key(int number) const {
    std::string name;
    write_key(number, name);
    return name;
  }
  /// The same, into reused memory.
  void write_key(int number, std::string& name) const;
};

// The parts of a run before its clients start, in any process.

/// `number`: of the run, among those of its plans. All must outlive it.
RunShared make_run(const RunPlan& plan, const Descriptor& strategy, int repetition, int number,
                   const Share& share, Env& env);

/// Makes the shared services of a run's clients report to its recorder: their commands, renewals,
/// votes and waits for replicas. Each counts for the phase in which it happens. `run` must outlive
/// the services.
void record_services(RunShared& run);
/// The same for the services of the victim alone.
void record_services(RunShared& run, Services& services, const Victim* victim);

/// Makes the other objects that its clients share: for the strategy's services, a canary's
/// meetings, the demand, and the counters. `env` belongs to the calling thread and must outlive the
/// run.
tl::expected<void, std::string> equip(const RunPlan& plan, Env& env, RunShared& run);

/// One client: repeats sections, from the intended start to the release. Used on one thread or
/// fiber, from its construction on.
class Worker {
 public:
  /// `life`: counts the processes in its place; above 0, it replaces a client that was killed.
  Worker(RunShared& run, int number, int life = 0);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Connects to the stores, and uses each connection once, which loads scripts and makes query
  /// plans.
  StoreResult<void> connect();
  /// Works until the run is over, or nothing is left to do. The client stays connected until its
  /// end.
  void work();
  /// Whether a fault ended it. Its end then closes its connections without a word.
  bool is_dead() const { return dead_; }

 private:
  void note_command(std::size_t kind, std::string_view command, Duration taken, TimePoint ended);
  /// Sets the request for a lock, whose key is used from now on.
  void request(int key, Mode mode, TimePoint deadline);
  /// Takes and gives back a lock that no other client wants.
  void use_once();
  /// Waits for the next intended start; nothing if the run is over.
  std::optional<TimePoint> next_start();
  /// The same for a rival, which starts when called.
  std::optional<TimePoint> next_call();
  bool is_rival() const { return call_ != nullptr; }
  /// A section that was due will not begin.
  void abandon(TimePoint intended, TimePoint now);
  /// Draws the work of the next section. False if nothing is left.
  bool next_transaction(TimePoint intended);
  void section(TimePoint intended);
  int own_key() const { return number_ % run_.workload.key_count(); }
  /// Takes all locks of the transaction, or none. Returns the outcome of the last attempt.
  AcquireOutcome take_all(TimePoint intended, TimePoint started);
  /// Waits for a connection of the pool. False if it got none in time; a pool can always be used up
  /// by clients that each wait for one more.
  bool take_connection(TimePoint deadline);
  /// The section gets no connection, and so no lock.
  AcquireOutcome without_connection(TimePoint intended, TimePoint started);
  AcquireOutcome try_all(TimePoint intended, TimePoint started, TimePoint deadline);
  AcquireOutcome take(const Wanted& wanted, TimePoint intended, TimePoint started,
                      TimePoint deadline);
  bool updates() const { return run_.strategy.traits.updates; }
  /// The section of a control without a lock: reads the number, works, and writes it, again and
  /// again until no other client has written in between. It waits for the beginning of the work
  /// that was not in vain.
  AcquireOutcome update(const Wanted& wanted, TimePoint intended, TimePoint started,
                        TimePoint deadline);
  struct Work {
    TimePoint begun{};
    Effort effort{};  ///< until then
  };
  /// Its reads and writes; `work`: the latest.
  AcquireResult try_to_update(int key, Work& work);
  /// The deadline of a request for one lock of several; nothing if the section's other locks would
  /// expire before its work is done.
  std::optional<TimePoint> limit(TimePoint asked, TimePoint deadline) const;
  /// Waits before another try, at most until the deadline. Returns whether another try makes sense.
  bool pause(std::uint32_t failures, TimePoint deadline);
  /// Gives back the transaction's locks, the latest first, or if it is dead forgets them;
  /// `written`: increments each counter before.
  void give_back(bool written);
  /// With a limit on iterations, takes one if any is left.
  bool take_iteration();
  /// Ends the iteration, and with the last one the run. Returns an unused one to the others.
  void end_iteration(bool used_up);
  /// A lock that the section holds.
  struct Held {
    int key = 0;
    Lease lease;
    TimePoint granted_at;
    std::optional<Reading> seen{};  ///< of the counter
    bool unprotected = false;       ///< it was not granted
  };
  /// The history's process for the section's lock number `place`: with one for each, releases of
  /// several locks begin at once.
  history::Process& process_of(std::size_t place);
  /// Works from `begun` on. False if the work could not be done.
  bool hold(TimePoint begun);
  void enter_unprotected(int key, Mode mode, const AcquireMark& mark, TimePoint now);
  void read_counter(Held& held);
  bool is_victim() const { return run_.victim && number_ == Victim::kClient; }
  /// Writes the counter back, unless the lock is shared.
  void write_counter(const Held& held);
  void release(const Held& held, TimePoint begun_at);
  /// Records the grant's effect on waiting clients.
  void note_grant(int key, const WaitTicket& wait, TimePoint intended, TimePoint granted_at);
  void note_contention(bool contended, TimePoint intended, TimePoint granted_at);
  void note_handoffs();
  Phase phase_of_wait(TimePoint intended, TimePoint ended) const;
  /// The phase of a section, by the end of its wait.
  Phase phase_of_end(TimePoint ended) const;
  /// When the end of the run cut a wait off; the time the store needs to cancel it is not counted.
  TimePoint cut_off(TimePoint started, TimePoint ended) const;
  /// The section does not wait any more, or will not begin.
  void end_wait() { record_.since.store(TimePoint::max(), std::memory_order_release); }
  void note_wait(const AcquireResult& result, const Effort& spent, TimePoint intended,
                 TimePoint started, TimePoint ended);
  /// Adds the wait of a whole section to the waits of this client.
  void note_own(Phase phase, TimePoint intended, TimePoint ended, bool cut);
  /// Why the lock was not granted; nothing if it was, or if the end of the run cut the wait off.
  std::optional<FailureReason> note_failure(const AcquireResult& result, TimePoint started);
  void note_transaction(AcquireOutcome outcome, TimePoint intended, TimePoint started);
  void note_loss(const Lease& lease, TimePoint learned_at);
  bool over() const { return over_.stop_requested(); }
  Recorder::Histograms& histograms() { return run_.recorder.histograms(phase_); }

  RunShared& run_;
  const int number_;
  const std::stop_token over_;
  std::unique_ptr<Services> own_services_;  ///< of the victim of faults, or on a host of its own
  std::unique_ptr<Env> base_env_;
  std::vector<ShardedHistogram*> command_times_;  ///< by the kind of command; null: not used yet
  MeteredEnv env_;
  std::unique_ptr<LockStrategy> strategy_;
  program::ProgramLock* const program_;  ///< the same; null if it is lockbench's own
  std::unique_ptr<CounterSession> counter_;
  ClientRecord& record_;
  Carrier& carrier_;
  const bool has_store_;
  Random random_;
  Transaction transaction_;  ///< of the current section, like `held_`; both reused
  std::vector<Held> held_;
  std::deque<history::Process> processes_;
  std::string key_name_;
  AcquireRequest request_;  ///< reused: copying a stop token writes to memory that clients share
  std::unique_ptr<Event> call_;           ///< of a rival only
  std::unique_ptr<Event> connection_;     ///< is free; null without a pool
  bool meets_ = false;                    ///< in the current section
  std::optional<FailureReason> failure_;  ///< of the latest section
  std::uint32_t failures_in_a_row_ = 0;
  std::uint32_t sections_ = 0;       ///< so far; may wrap
  Phase begun_ = Phase::unmeasured;  ///< in which the current section was due to begin
  Phase phase_ = Phase::unmeasured;  ///< in which its wait ended: what it counts for
  bool dead_ = false;
  Counts counts_;                   ///< of the current section
  std::vector<Handoff> completed_;  ///< reused
};

}  // namespace lockbench::loadgen
