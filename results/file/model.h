#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "results/file/run.h"

namespace lockbench::results {

// The result file as plain data, which a run writes and everything else reads. Names follow the
// file; times are in seconds. `results/schema.json` is the file's JSON Schema. A figure that could
// not be measured is null in the file and NaN here; figures of a distribution without samples are
// null in the file and 0 here.

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
/// Begins the reason if its run failed before its load.
inline constexpr std::string_view kDidNotStart = "did not start: ";

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

/// What a sweep set an option to.
struct SweptValue {
  std::string option, value;                  ///< as on the command line
  std::optional<double> seconds{}, number{};  ///< if it is a length of time, or a number
};

/// One strategy, on simulated machines, with several seeds. A violation is a grant while another
/// client held the lock in a mode that excludes it.
struct Simulation {
  std::string strategy;
  std::optional<SweptValue> swept{};  ///< only of a sweep
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
  double largest_share = 0;               ///< of acquisitions, by the client with the most
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
  std::string kind, store{}, endpoint{}, family{};
  std::optional<std::string> lock{};  ///< the worst, or the latest
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
  std::vector<std::string> proposals;  ///< patterns of keys that look like locks, if none was named
};

}  // namespace lockbench::results
