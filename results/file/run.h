#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::results {

// A run of the result file, and what it consists of: see model.h.

/// One measured distribution. Percentiles come from the fine histogram.
struct Distribution {
  struct Bucket {
    double upper = 0;
    std::uint64_t count = 0;
  };

  /// Samples cut off by a timeout or the end of the run: their full length is not known.
  struct Censored {
    std::uint64_t count = 0;
    std::vector<Bucket> buckets;  ///< by the observed length
    std::uint64_t overflow = 0;
  };

  std::uint64_t count = 0;  ///< of complete samples
  /// Over complete and censored samples, as if each of the latter had ended when it was cut off.
  double mean = 0, stddev = 0, min = 0;
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  double relative_error = 0;
  std::vector<Bucket> buckets;  ///< ascending, without empty ones
  std::uint64_t overflow = 0;   ///< samples above the histogram's range, counted in `count`
  Censored censored;
  /// Figures that are lower bounds because they depend on a censored sample.
  std::vector<std::string> at_least;

  bool any() const { return count + censored.count > 0; }
  bool is_at_least(std::string_view figure) const {
    return std::ranges::find(at_least, figure) != at_least.end();
  }
};

/// The nodes that an experiment puts a lock on, and how many of them have a fault.
struct Nodes {
  std::uint64_t count = 1;
  std::uint64_t down = 0, frozen = 0, slow = 0;
  double slow_seconds = 0;  ///< added to each answer of a slow node

  bool healthy() const { return down + frozen + slow == 0; }
  bool operator==(const Nodes&) const = default;
};

/// What clients did in a run.
struct Load {
  std::string name;  ///< "demand"; empty: none
  std::uint64_t clients = 0;
  double hold_seconds = 0;             ///< mean
  std::optional<double> rate;          ///< open loop: sections per second
  double rtt_seconds = 0;              ///< added by lockbench
  std::optional<std::string> hot_set;  ///< "share=50%,keys=2500,move=10s"
  std::optional<std::string> trace;    ///< the file that lists the locks taken
  std::optional<std::uint64_t> pool;   ///< connections that the clients shared
  /// Other locks, held and renewed during the run; only in that experiment.
  std::optional<std::uint64_t> held_locks;
  std::optional<Nodes> nodes;  ///< only in that experiment

  bool operator==(const Load&) const = default;
};

struct Outcomes {
  std::uint64_t acquired = 0, timed_out = 0, refused = 0, failed = 0, unknown = 0, abandoned = 0;
};

/// Means per grant.
struct WaitAnatomy {
  double round_trip_seconds = 0, backoff_seconds = 0, notified_seconds = 0;
};

/// Percentiles of the acquisitions in which all clients have the same weight.
struct ByClient {
  double p50 = 0, p99 = 0, p999 = 0;
  double worst_p99 = 0;               ///< of the client with the highest
  bool worst_is_longest = false;      ///< that is its longest wait: it has fewer than 100
  std::vector<std::string> at_least;  ///< of these, as in a Distribution
};

struct Fairness {
  double jain = 1;  ///< NaN if nothing was granted
  std::uint64_t longest_streak = 0;
  double longest_wait_seconds = 0;
  bool longest_wait_at_least = false;     ///< waits were cut off
  std::vector<std::uint64_t> per_client;  ///< sections of each client
  std::optional<ByClient> by_client;      ///< nothing if no client waited
};

/// The acquisitions of a load with both modes, like `Run::acquire`, but without the sections of a
/// trace that were never begun: their modes are not known.
struct ByMode {
  Distribution exclusive, shared;
};

/// Sections that take several locks.
struct Transactions {
  double locks_per_second = 0;  ///< granted, also to attempts that did not get all
  std::uint64_t aborts = 0;     ///< attempts that did not get all locks
  std::uint64_t retries = 0;    ///< attempts after an abort
  /// Aborts by the store to break a deadlock, or by a time-out with locks taken as drawn.
  std::uint64_t deadlocks = 0;
  /// Time until a section had all its locks, from its intended and from its actual start.
  Distribution acquire, acquire_service;
};

/// Renewal of held leases by a timer.
struct Renewal {
  std::uint64_t renewals = 0;  ///< renewals that prolonged a lease
  std::uint64_t failures = 0;  ///< renewals without a usable answer
  std::uint64_t lost = 0;      ///< renewals that found the lease lost
  double commands_per_second = 0;
  Distribution duration, slip, margin;  ///< a margin below 0 counts as 0
};

/// The answers of one node of a quorum to requests for the lock.
struct NodeVotes {
  std::string node;                        ///< its endpoint
  std::uint64_t granted = 0, refused = 0;  ///< in time or later
  std::uint64_t failed = 0;  ///< no answer in time, or not sent to a node that is down
};

/// A lock on several independent nodes.
struct Quorum {
  std::uint64_t nodes = 0;
  std::vector<NodeVotes> votes;
  std::uint64_t split_votes = 0;           ///< rounds in which no client had a majority
  double rounds_per_grant = 0;             ///< NaN if nothing was granted
  std::vector<Distribution> node_seconds;  ///< response times of each node, of answers in time
  Distribution validity;                   ///< left at the grant
};

/// A lock that waits until replicas acknowledge it.
struct Replication {
  std::uint64_t replicas = 0;  ///< how many must acknowledge
  std::uint64_t refusals = 0;  ///< locks released again, as too few acknowledged in time
  Distribution wait;           ///< for acknowledgements, successful or not
};

/// How an application uses the lock, if not as it should.
struct Application {
  std::uint64_t unprotected = 0;    ///< sections without their lock, as its acquisition failed
  std::uint64_t pool_timeouts = 0;  ///< sections that got no connection in time
  Distribution pool_wait;           ///< for each connection
};

/// The client program that had the lock, in processes of its own.
struct Program {
  std::string name, version;    ///< as it says
  std::uint64_t processes = 0;  ///< that carried the clients
  /// Round trips of empty requests beside the load: the part of each call that is not the lock's.
  Distribution echo;
};

/// `unprotected`: a control, which promises no exclusion, lost updates as expected. `unaudited`: no
/// write was accepted, or the counter could not be read. `untested`: nothing was violated, but too
/// few clients competed to tell. `counted`: a control without a lock lost no update.
enum class Verdict { exclusive, violated, unprotected, unaudited, untested, counted };
/// The names of the verdicts in the file, in that order.
inline constexpr std::array<std::string_view, 6> kVerdicts{"exclusive", "violated", "unprotected",
                                                           "unaudited", "untested", "counted"};
constexpr std::string_view to_string(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

struct Audit {
  std::uint64_t increments = 0;  ///< accepted writes
  std::uint64_t counter = 0;     ///< increase of the counters
  std::uint64_t lost_updates = 0;
  std::uint64_t lost_updates_max = 0;  ///< if every write of unknown outcome took effect
  std::uint64_t overlaps = 0;
  double overlap_seconds = 0;
  std::uint64_t fence_regressions = 0;
  std::uint64_t stale_writes_rejected = 0;
  std::uint64_t resource_failures = 0;  ///< reads and writes of the counter that failed
  /// Grants for which another client held or wanted the lock: only these can be violated.
  std::uint64_t contended_grants = 0;
  /// At most so many violations in a million contended grants, with a confidence of 95 %; nothing
  /// without contention.
  std::optional<double> violations_per_million;
  Verdict verdict = Verdict::exclusive;

  /// No violation was seen; there may have been too few grants to tell.
  bool saw_no_violation() const {
    return verdict == Verdict::exclusive || verdict == Verdict::untested ||
           verdict == Verdict::counted;
  }
};

/// One second of a run.
struct SeriesPoint {
  double t = 0;  ///< end of the interval, since the load began
  bool warmup = false;
  std::uint64_t sections = 0;
  double acquire_p50 = 0, acquire_p99 = 0;
  std::uint64_t failed = 0;  ///< acquisitions failed or unknown
  std::uint64_t waiters = 0, holders = 0;
};

/// A fault that was injected during the run, and its effect on the throughput. Times are since the
/// load began, as in the series.
struct FaultMark {
  std::string fault;  ///< "store-kill", "partition:0.5"
  double at_seconds = 0;
  /// When healing began; nothing: not before the end of the run.
  std::optional<double> healed_seconds;
  /// From healing, or from the fault if it was not healed, until throughput was back; nothing: not
  /// within the run.
  std::optional<double> recovery_seconds;
  /// Lowest throughput as a share of that before the fault; NaN if that was too low to compare.
  double lowest_share = 0;
};

/// Begins the reason that does not blame the generator: all clients were busy, so sections began
/// late.
inline constexpr std::string_view kNotTheLoadAskedFor = "the load was not the one asked for";

struct Generator {
  double cpu_seconds = 0;
  double cpu_share = 0;  ///< of all cores of this machine
  bool valid = true;
  std::vector<std::string> reasons;
  // Shares of all cores of the machine during the load; nothing if the kernel does not report them.
  std::optional<double> machine_cpu_share;  ///< in use by any program
  /// In use by programs other than the generator and the private servers; nothing with the user's
  /// servers, which may run on this machine.
  std::optional<double> other_cpu_share;
  std::optional<double> steal_share;           ///< taken by other virtual machines
  std::optional<double> pressure_share;        ///< share of the time a thread waited for a core
  std::optional<std::string> clients_on;       ///< "fibers" or "threads"
  std::optional<std::uint64_t> threads;        ///< threads that clients ran on
  std::optional<double> busiest_thread_share;  ///< with fibers: CPU of the busiest, of one core
};

/// One process of a run on several hosts.
struct Rank {
  std::uint64_t rank = 0;
  std::string host;
  std::uint64_t clients = 0;
  std::uint64_t sections = 0;
  double share = 0;  ///< of all sections
  double acquire_p50 = 0, acquire_p99 = 0;
  double cpu_seconds = 0;
  double cpu_share = 0;            ///< of all cores of its host
  double lag_p99_seconds = 0;      ///< open loop: how late its idle clients began
  double late_seconds = 0;         ///< upper bound: how long after rank 0 it began the load
  bool outlier = false;            ///< its waits are far from those of most ranks
  bool lost = false;               ///< it was dead or silent: left out
  std::vector<std::string> notes;  ///< why its figures are those of its generator or its host
};

/// A confidence interval of 95 %, of a mean.
struct Interval {
  double low = 0, high = 0;

  bool holds(double value) const { return low <= value && value <= high; }
};

/// A cost: mean over the pairs of runs that are compared.
struct Cost {
  double mean = 0;
  std::optional<Interval> interval;  ///< nothing for one pair
};

/// The cost of the quantity that an experiment varies; the same in all repetitions of a load.
struct Costs {
  /// Share of the throughput without held locks that renewing held locks took.
  std::optional<Cost> throughput;
  /// Increase of the acquire p50 per node above the smallest quorum, in seconds.
  std::optional<Cost> node_seconds;
  std::optional<double> node_commands;  ///< likewise of the commands per section
};

struct Run {
  std::string strategy, backend;
  int repetition = 1;
  Load load;
  std::optional<bool> interrupted;  ///< true: a stop cut it short; nothing otherwise
  double warmup_seconds = 0;        ///< load before the measured part
  double duration_seconds = 0;
  std::uint64_t sections = 0;
  double sections_per_second = 0;
  /// Share of the time in which the busiest lock was held or being handed over; nothing if sections
  /// do not exclude each other, or take several locks.
  std::optional<double> lock_taken;
  Outcomes outcomes;
  std::uint64_t leases_lost = 0, shared_sections = 0;
  /// From the end of a lost lease's validity until its client knew. For a lease lost before that
  /// end: from its last confirmation, an upper bound.
  Distribution loss_to_knowledge;
  /// `handoff`: from the start of a release to the next grant to a client that was waiting then.
  /// `turnaround`: from the start of such a release to the next grant to any client.
  Distribution acquire, acquire_service, hold, release, handoff, turnaround, schedule_lag;
  std::uint64_t releases_not_owner = 0, releases_failed = 0;
  std::uint64_t awaited_releases = 0;  ///< at which a client waited
  std::uint64_t direct_handoffs = 0;   ///< awaited releases whose next grant went to such a client
  std::uint64_t overtakings = 0;       ///< grants to clients that came after an awaited release
  /// Response times of the store by command name, without commands that wait for the lock at the
  /// server.
  std::map<std::string, Distribution> commands;
  WaitAnatomy wait;
  double attempts_per_grant = 0, commands_per_section = 0;
  std::optional<double> herd_factor;  ///< nothing if no client waits for a wake-up
  std::optional<double> server_cpu_seconds_per_section;
  /// Executed by the lock's servers, including those inside scripts; nothing if they do not say.
  std::optional<double> server_commands_per_section;
  /// All bytes on the connections, both ways; nothing without a proxy.
  std::optional<double> bytes_per_section;
  Fairness fairness;
  std::optional<ByMode> acquire_by_mode;     ///< nothing unless both modes occurred
  std::optional<Transactions> transactions;  ///< nothing if each section takes one lock
  /// Nothing if no lease was renewed. With held locks: their renewal, including their release.
  std::optional<Renewal> renewal;
  std::optional<Quorum> quorum;            ///< nothing for a lock on a single node
  std::optional<Replication> replication;  ///< nothing if the lock does not wait for replicas
  std::optional<Program> program;          ///< nothing for lockbench's own strategies
  std::optional<Application> application;  ///< nothing unless the load asks for it
  Audit audit;
  std::vector<SeriesPoint> series;
  std::vector<FaultMark> faults;  ///< in order of time
  Generator generator;
  std::optional<Costs> costs;       ///< only in an experiment that measures them
  std::vector<Rank> ranks;          ///< empty in a run of one process
  std::vector<std::string> errors;  ///< distinct, the most frequent first; not all
};

/// A field of a run, and its name in the result file.
template <class T>
struct RunField {
  const char* name;
  T Run::*member;
};

/// The distributions and counts directly in a run. fields.h writes and reads them by these lists,
/// and compare judges them by the same lists.
inline constexpr std::array kRunDistributions{
    RunField<Distribution>{"loss_to_knowledge", &Run::loss_to_knowledge},
    RunField<Distribution>{"acquire", &Run::acquire},
    RunField<Distribution>{"acquire_service", &Run::acquire_service},
    RunField<Distribution>{"hold", &Run::hold},
    RunField<Distribution>{"release", &Run::release},
    RunField<Distribution>{"handoff", &Run::handoff},
    RunField<Distribution>{"turnaround", &Run::turnaround},
    RunField<Distribution>{"schedule_lag", &Run::schedule_lag}};
inline constexpr std::array kRunCounts{
    RunField<std::uint64_t>{"leases_lost", &Run::leases_lost},
    RunField<std::uint64_t>{"shared_sections", &Run::shared_sections},
    RunField<std::uint64_t>{"awaited_releases", &Run::awaited_releases},
    RunField<std::uint64_t>{"direct_handoffs", &Run::direct_handoffs},
    RunField<std::uint64_t>{"overtakings", &Run::overtakings}};

}  // namespace lockbench::results
