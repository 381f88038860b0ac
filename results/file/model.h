#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockbench::results {

// The result file as plain data, which a run writes and everything else reads. Names follow the
// file; times are in seconds. `results/schema.json` is the file's JSON Schema. A figure that could
// not be measured is null in the file and NaN here; figures of a distribution without samples are
// null in the file and 0 here.

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
  bool longest_wait_at_least = false;     ///< that wait was cut off
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
/// few clients competed to tell.
enum class Verdict { exclusive, violated, unprotected, unaudited, untested };
/// The names of the verdicts in the file, in that order.
inline constexpr std::array<std::string_view, 5> kVerdicts{"exclusive", "violated", "unprotected",
                                                           "unaudited", "untested"};
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
    return verdict == Verdict::exclusive || verdict == Verdict::untested;
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

struct Server {
  std::string version;
  std::vector<std::string> endpoints;
  std::optional<std::string> encryption;  ///< of connections: "TLS", "sslmode=verify-full"
  /// What the user should know, such as a password that is sent unencrypted.
  std::vector<std::string> warnings;
};

struct Environment {
  std::string cpu;
  int cores = 0;
  std::string kernel;
  std::uint64_t memory_bytes = 0;
  std::map<std::string, Server> servers;
};

struct Build {
  std::string version, commit, build_type;
};

struct Skipped {
  std::string strategy, reason;
};

/// An option as it was used: durations in seconds.
using OptionValue =
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// An event of a hazard's play, `t` seconds after its beginning.
struct HazardEvent {
  double t = 0;
  std::string who, what;
};

/// One fault played against one strategy. Outcomes are words: "safe", "double-grant".
struct Hazard {
  std::string scenario, strategy;
  std::string expected;  ///< what the strategy declares
  std::string observed;  ///< what was seen
  bool agrees = true;
  std::map<std::string, OptionValue> evidence;  ///< "reason" explains the outcome in words
  std::vector<HazardEvent> timeline;
};

// What `capacity` found.

/// All steps at one rate together. A step is one run; it is invalid if the generator limited its
/// load.
struct CapacityRate {
  double rate = 0;
  std::string decision;  ///< "kept", "missed", or "open": neither could be shown
  std::uint64_t samples = 0, steps = 0;
  std::uint64_t missed_steps = 0;   ///< steps that missed the objective by themselves
  std::uint64_t invalid_steps = 0;  ///< they can show that the rate is kept, not that it is missed
  /// Where the objective's figure lies, with a confidence of 95 % on either side; NaN on a side
  /// that the steps do not show. With several objectives, the figure of one that decides.
  double figure_low = 0, figure_high = 0;
  double rho = 0;  ///< share of the time a lock was taken: held, or being handed over
  Distribution acquire;
  std::string reason;  ///< of the decision, with figures
};

/// The highest load at which a strategy keeps an objective.
struct Capacity {
  std::string strategy, objective;
  std::uint64_t clients = 1, keys = 1;
  /// Sections per second: the highest rate that kept the objective, 0 if none did; the lowest rate
  /// that missed it, NaN if none did. Rates in between could not be decided.
  double lowest = 0, highest = 0;
  std::optional<double> ceiling;  ///< 1 / hold over all keys; nothing without a hold
  std::string limit;              ///< "lock", "store", "generator", "clients" or "unknown"
  std::string limit_reason;
  bool confirmed = false;  ///< `lowest` and `highest` are close, and were measured again
  /// Whether a run broke exclusion, promised or not; empty: no run was audited.
  std::optional<bool> violated;
  /// `utilisation`: the planned rate divided by `lowest`. `headroom`: the share by which the load
  /// can grow to reach `lowest`.
  std::optional<double> planned_rate, utilisation, headroom;
  /// Keys that the planned rate needs, each with the load of a key here; nothing if it is kept, or
  /// if more keys would not help.
  std::optional<std::uint64_t> keys_needed;
  std::vector<CapacityRate> rates;  ///< ascending

  /// Whether the planned rate was shown to be too high: by a miss up to that rate, or the ceiling.
  bool planned_too_high() const {
    return planned_rate && (*planned_rate >= highest || (ceiling && *planned_rate >= *ceiling));
  }
  /// The highest rate above `lowest` that each of its steps met, though they do not decide it; null
  /// if there is none.
  const CapacityRate* met_only() const {
    const CapacityRate* met = nullptr;
    for (const CapacityRate& one : rates) {
      if (one.rate <= lowest) continue;
      if (one.decision != "open" || one.missed_steps > 0) break;
      met = &one;
    }
    return met;
  }
  /// The findings at that rate; null if it was not measured.
  const CapacityRate* at(double rate) const {
    const auto found = std::ranges::find(rates, rate, &CapacityRate::rate);
    return found == rates.end() ? nullptr : &*found;
  }
};

// What `simulate` found.

/// A rate, with its interval of 95 %; NaN if nothing was simulated.
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

/// The waits of the clients of a region until their grants.
struct SimulatedRegion {
  std::string region;
  Distribution acquire;
};

/// One strategy, on simulated machines, with several seeds. A violation is a grant while another
/// client held the lock in a mode that excludes it.
struct Simulation {
  std::string strategy;
  std::uint64_t clients = 0, keys = 0;
  std::uint64_t seeds = 0, first_seed = 0;
  std::uint64_t sections = 0;
  double simulated_seconds = 0;  ///< measured, over all seeds
  std::uint64_t violations = 0;
  Estimate per_million{}, per_year{};  ///< violations: per million sections, and per year
  std::map<std::string, std::uint64_t> causes{};  ///< of the violations
  /// Updates lost at a resource that trusts the lock, and at one that checks fencing numbers.
  std::uint64_t lost_updates = 0, lost_updates_fenced = 0;
  /// Share of the time in which a free lock was granted within a second to clients that wanted it.
  double availability = std::numeric_limits<double>::quiet_NaN();
  double longest_outage_seconds = 0;
  Distribution acquire;
  std::vector<SimulatedRegion> regions{};  ///< empty: all on one machine
  std::vector<std::string> errors{};       ///< distinct, not all
};

// What `watch` saw.

/// Counts of events of one lock, or of the locks of a family, since the watch began.
struct ObservedCounts {
  std::uint64_t acquisitions = 0, releases = 0;
  std::uint64_t renewals = 0;  ///< seen as a TTL that grew under the same holder
  std::uint64_t expired_while_held = 0;
  std::uint64_t undecided = 0;  ///< ended so close to the expiry that it may have been a release
  std::uint64_t session_lost = 0;
  std::uint64_t lapsed = 0;         ///< expired, in a family that is never released by design
  std::uint64_t taken_over = 0;     ///< taken by another client shortly after it had expired
  std::uint64_t owner_changed = 0;  ///< without a release in between that could be seen
  std::uint64_t without_ttl = 0;    ///< ended without ever having a TTL, though the store has TTLs
  std::uint64_t thin_margins = 0;   ///< released or renewed with less than a tenth of the TTL left
  std::uint64_t most_waiting = 0;   ///< most clients that waited at the same time so far
};

/// The counts, and the present state.
struct ObservedFigures : ObservedCounts {
  std::uint64_t held_now = 0;
  std::uint64_t without_ttl_now = 0;      ///< of those held now
  std::uint64_t held_long_now = 0;        ///< longer than usual, or than the user allows
  std::uint64_t renewal_stopped_now = 0;  ///< were renewed in time before, but no longer
  double acquisitions_per_second = 0;     ///< in the last seconds
  /// Of the acquisitions, those whose holder was looked at; of the holdings that ended, those whose
  /// length was seen.
  double owner_share = 1, hold_share = 1;
};

/// Locks of one family as a watch saw them. `accuracy` of the counts is "exact", "at_least" or
/// "sampled". results/tables/observed.h says where each figure is shown.
struct Observed : ObservedFigures {
  std::string store, endpoint, family, source, accuracy;
  std::uint64_t locks = 0;                   ///< distinct ones
  std::uint64_t no_ttl = 0;                  ///< without_ttl and without_ttl_now together
  std::optional<std::uint64_t> waiting_now;  ///< nothing if the store does not show waiters
  double oldest_hold = 0, oldest_wait = 0;  ///< age of the longest current one, in seconds; 0: none
  Distribution hold;                        ///< empty if `hold_share` is too small
  std::optional<Distribution> wait;         ///< nothing if the store does not show waiters
  std::optional<double> margin_min;         ///< seconds of the TTL left at a release or renewal
  std::uint64_t missed = 0;                 ///< changes of this store that were not looked at
};

/// One of the locks that hurt most, with its latest events.
struct ObservedLock {
  struct Moment {
    double t = 0;  ///< seconds since the watch began
    std::string what, holder;
    std::uint64_t waiting = 0;
  };

  std::string store, endpoint, family, lock, shape;
  std::string trouble;                ///< its problem in a word or two; empty: none
  std::optional<std::string> holder;  ///< a hash, or with --show-owners its name; nothing: free
  std::optional<double> held_seconds, ttl_left_seconds;
  std::optional<std::uint64_t> waiting_now;
  std::uint64_t acquisitions = 0, expired_while_held = 0, most_waiting = 0;
  std::vector<Moment> history;
};

/// A finding that on-call should know.
struct ObservedFinding {
  std::string kind, store, endpoint, family;
  std::optional<std::string> lock;  ///< the worst, or the latest
  std::uint64_t times = 0;
  double first_seconds = 0, last_seconds = 0;  ///< when it was seen, since the watch began
  bool over = false;                           ///< not seen for a while
  std::string evidence, advice;
};

/// A server that was watched, and how well it could be seen.
struct ObservedSource {
  std::string store, endpoint, way, accuracy, waiters;
  std::vector<std::string> unseen;  ///< what cannot be seen of it, a sentence each
  std::uint64_t no_locks = 0;       ///< keys that match a pattern but are no locks
  double watched_seconds = 0, blind_seconds = 0;
  std::uint64_t missed = 0, commands = 0;
};

struct Result {
  std::string id;
  std::string started_at;  ///< RFC 3339
  /// The arguments of `lockbench` that reproduce the result, without passwords; empty: unknown.
  std::vector<std::string> command;
  bool interrupted = false;
  /// Exit code of the command that wrote the file; only if a rank was lost.
  std::optional<std::uint64_t> exit_code;
  Build lockbench;
  Environment environment;
  std::map<std::string, OptionValue> workload;
  std::vector<Skipped> skipped;
  std::vector<Run> runs;
  std::optional<std::vector<Hazard>> hazards;
  std::optional<std::vector<Capacity>> capacity;
  std::optional<std::vector<Simulation>> simulation;
  std::optional<std::vector<Observed>> observed;  ///< only of a watch
  std::vector<ObservedLock> locks;
  std::vector<ObservedFinding> findings;
  std::vector<ObservedSource> sources;
};

}  // namespace lockbench::results
