#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "history/log.h"
#include "loadgen/record/certificate.h"
#include "loadgen/record/metrics.h"
#include "loadgen/run/fault.h"
#include "loadgen/run/workload.h"

namespace lockbench::loadgen {

/// Progress of a run, reported about once a second and when a phase changes. The views are valid
/// only during the call.
struct Progress {
  enum class Phase { connecting, warming_up, measuring, draining };

  std::string_view strategy, load;
  int run = 0, runs = 0;  ///< this is run number `run` of `runs`, from 1
  Phase phase = Phase::connecting;
  double done = 0;  ///< share of the phase, 0 to 1
  int clients_connected = 0, clients = 0;
  std::uint64_t sections = 0;
  double sections_per_second = 0;  ///< since the previous report
  std::uint64_t failed = 0;
  /// Sections without a lock so far, and the latest message of each reason.
  ByKind<FailureReason, std::uint64_t> failures{};
  ByKind<FailureReason, std::string> messages{};
  std::uint64_t stuck = 0;  ///< locks taken, but by no client of the run
};

/// Called on the runner's thread. This base class ignores it.
class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  virtual void on_progress(const Progress& /*progress*/) {}
  /// One line for the user that does not affect the figures.
  virtual void on_warning(const std::string& /*line*/) {}
};

/// Makes one client's Env; called on the client's thread. Tests and faults supply their own.
using EnvFactory = std::function<std::unique_ptr<Env>(std::uint64_t seed)>;

struct RunPlan;
struct RunShared;

/// Notified of every run. Called on the runner's thread (several threads if runners work in
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

/// Makes one run, from connecting to removing its keys. `progress` names it to the observer. The
/// error says why it could not start.
using RunMaker = std::function<tl::expected<results::Run, std::string>(
    const RunPlan& plan, const Descriptor& strategy, int repetition, const Progress& progress,
    ProgressObserver& observer, const std::stop_token& stop)>;

/// CPU time, user and system, used by private servers so far, in seconds. Empty without any.
struct PrivateCpu {
  /// Of this set of servers, as in the endpoints, or "counter"; nothing if the set is not private,
  /// or one of its servers has ended.
  std::function<std::optional<double>(std::string_view set)> of;
  std::function<double()> all;  ///< including ended servers
  /// Of this process, a client program's, and its children.
  std::function<std::optional<double>(pid_t)> of_tree;
};

struct RunPlan {
  std::string run_id;  ///< names every key: lockbench:<run id>:{...}
  std::vector<const Descriptor*> strategies;
  Workload workload;
  Endpoints endpoints;
  std::string counter_url;  ///< Redis for the counter, unless it is in memory
  EnvFactory make_env = make_system_env;
  /// Seeds the clients' Envs, so that a run on virtual time can be repeated; empty: random.
  std::optional<std::uint64_t> nonce;
  /// Replaces services before any strategy is made; may be empty.
  std::function<void(Services&)> provide_services;
  /// Called on the runner's thread when all clients are connected, and after they have ended but
  /// before their keys are removed; may be empty.
  std::function<void()> before_load, after_load;
  /// Whether before_load stops servers. If so, a server that does not answer at the end is not a
  /// reason to distrust the run.
  bool stops_servers = false;
  /// Played in every run, ordered by timetable(); requires a fault_target.
  std::vector<Fault> faults;
  FaultTarget* fault_target = nullptr;
  RunWatcher* watcher = nullptr;  ///< of every run, while it is under way; may be null
  /// Bytes passed between clients and servers so far, if they can be counted; may be empty.
  std::function<std::uint64_t()> bytes_moved;
  PrivateCpu private_cpu;
  /// Whether the private servers of a strategy get faster while they run, as a JVM does; may be
  /// empty.
  std::function<bool(const Descriptor&)> warms_up;
  history::Log* history = nullptr;  ///< takes the operations of every run; may be null
  RunMaker maker;                   ///< of its runs; empty: this process has all clients
  std::function<MachineReading()> machine = read_machine;
  /// Whether a strategy's servers outlive this process, and keys left in them too; empty: they do.
  std::function<bool(const Descriptor&)> servers_stay;
  /// Whether the run already exists, and so is left out; may be empty.
  std::function<bool(const Descriptor&, int repetition)> is_done;
  /// Called on the runner's thread with each result, before the run's keys are removed; may be
  /// empty.
  std::function<void(const results::Run&)> run_over;
};

/// The number of threads that the clients of this load share as fibers: the requested number, or
/// else one per core, but no more than clients. `beside_servers`: private servers on this machine
/// need a core too.
int generator_threads(const Workload& workload, bool beside_servers);

struct NotStarted : results::Skipped {
  std::string run_id;
};

struct RunReport {
  std::vector<results::Run> runs;  ///< in the order in which they were made
  bool interrupted = false;
  /// Runs that could not start, for instance because their store could not be reached.
  std::vector<NotStarted> not_started;
};

/// Runs every strategy of each plan as often as the plans say, one run after another and
/// interleaved: all plans once, then all again in the opposite order, and so on, so that a drift of
/// the machine affects all alike. A stop ends the current run and reports the results so far. Each
/// run's keys are removed, however it ends.
RunReport run_plans(std::span<const RunPlan> plans, ProgressObserver& observer,
                    const std::stop_token& stop);

/// Called with one line about the next measurement of an experiment.
using OnStep = std::function<void(const std::string& line)>;
/// Makes run number `number` of an experiment, with keys of its own. Passes on its warnings.
RunReport run_once(RunPlan plan, int number, const OnStep& on_warning, const std::stop_token& stop);

}  // namespace lockbench::loadgen
