#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "history/log.h"
#include "loadgen/record/histogram.h"
#include "loadgen/run/workload.h"
#include "results/file/model.h"
#include "simulate/faults.h"
#include "simulate/redis/node.h"

namespace lockbench::simulate {

/// Sees a simulation from inside. Called on its fibers.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// The clients are connected, and the load begins.
  virtual void begins(World& world) = 0;
  /// `until`: it is healed.
  virtual void struck(Disturbance kind, TimePoint until) = 0;
  /// The Env of a service of this client, around `env`.
  virtual std::unique_ptr<Env> watch_service(int client, std::unique_ptr<Env> env) = 0;
  /// All clients have ended. May wait.
  virtual void ended(const Nodes& nodes) = 0;
};

/// Times of a real machine.
struct Calibration {
  /// Of the server's processor, for what a client sends at once: waking up, reading and answering,
  /// beside the commands themselves.
  Duration per_request{};
  DurationDistribution delay{};  ///< of a message, one way, on one machine
};

/// One strategy under one workload, on simulated machines.
struct Plan {
  const Descriptor* strategy = nullptr;
  loadgen::Workload workload;
  std::vector<int> regions{};  ///< clients and servers take turns; none: all on one machine
  std::vector<Pauses> pauses{};
  Faults faults{};
  RedisSettings redis{};
  int members = 1;  ///< of a cluster of etcd or ZooKeeper; with failovers it has three
  std::optional<Calibration> calibration{};
  OrderPlan orders{};
  /// It ends early after so many events, such as messages that arrive; 0: whenever they come.
  std::uint64_t most_events = 0;
  bool summarises = false;  ///< Outcome::run is wanted
  // Of each seed.
  Watcher* watcher = nullptr;       ///< may be null
  Trace trace{};                    ///< empty: none
  history::Log* history = nullptr;  ///< may be null
  /// Called about a hundred times with the share that is done; empty: not. On the seed's thread.
  std::function<void(double share)> on_progress{};
};

/// Why the strategy cannot be simulated; empty: it can.
std::string why_not(const Descriptor& strategy);

/// What happened with one seed.
struct Outcome {
  std::uint64_t sections = 0;
  Duration simulated{};  ///< measured
  /// Grants while another client was inside, and what led to them.
  std::uint64_t violations = 0;
  std::map<std::string, std::uint64_t> causes{};
  /// Updates lost at a resource that trusts the lock, and at one that checks fencing numbers.
  std::uint64_t lost = 0, lost_fenced = 0;
  /// Time that free locks were wanted in vain, summed over the keys, and the longest.
  Duration outage{}, longest_outage{};
  loadgen::HistogramSnapshot acquired{}, cut{}, released{};
  Duration servers_worked{};  ///< of all servers together, warm-up included
  std::vector<loadgen::HistogramSnapshot> by_region{};  ///< grants, as Plan::regions
  std::vector<std::string> errors{};
  /// As a run of that load would be summarised; figures of real machines, such as CPU time, are not
  /// in it.
  std::optional<results::Run> run{};
};

/// Plays the plan with this seed, on the calling thread and on virtual time: reads no clock, opens
/// no socket, starts no thread. The same seed gives the same outcome and trace everywhere. A stop
/// ends it early. The error says why it could not begin.
tl::expected<Outcome, std::string> simulate(const Plan& plan, std::uint64_t seed,
                                            const std::stop_token& stop = {});

/// A short play of the load, for figures that nobody measured: always with the same seed, and with
/// at most `most_events` events. Nothing if it could not begin, had too few waits, or was stopped.
std::optional<results::Run> rehearse(Plan plan, std::uint64_t most_events,
                                     const std::stop_token& stop = {});

/// The outcomes of several seeds, from `first_seed` on, as a result has them.
results::Simulation summarise(const Plan& plan, std::uint64_t first_seed,
                              std::span<const Outcome> outcomes);

}  // namespace lockbench::simulate
