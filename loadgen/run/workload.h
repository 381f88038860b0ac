#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/run/duration_distribution.h"
#include "results/file/model.h"
#include "strategies/descriptor.h"

namespace lockbench::loadgen {

/// A lock that a section asks for.
struct Wanted {
  int key = 0;
  Mode mode = Mode::exclusive;
  bool operator==(const Wanted&) const = default;
};

struct TraceLocks;

/// A file of lock requests, in the format of FissLock (Zhang et al., OSDI 2024), which ShiftLock
/// (FAST 2025) reads too. A line for each request:
///
///   transaction,task,type,lock,mode
///
/// all whole numbers. Lines of one transaction follow one another. `task` is 0: the request is for
/// a lock. `type` is the transaction's. `mode` is 1 for shared and 2 for exclusive. The task may be
/// missing. Empty lines and those that begin with # are skipped.
struct Trace {
  /// Locks are numbered from 0 to below this.
  static constexpr int kMostKeys = 1 << 24;
  static constexpr std::size_t kMostLocks = 1024;  ///< of a transaction

  std::string path;
  int keys = 0;  ///< the highest lock's number plus 1
  std::uint64_t transactions = 0;

  /// Reads all of the file, and into `locks` what its transactions ask for. The error names the
  /// line, and what is wrong with it.
  static tl::expected<Trace, std::string> read(const std::string& path,
                                               TraceLocks* locks = nullptr);

  bool operator==(const Trace&) const = default;
};

/// The locks of all transactions in their order, each lock once for a transaction.
struct TraceLocks {
  std::vector<Wanted> locks;
  std::vector<std::size_t> ends;  ///< of each transaction's among them

  std::span<const Wanted> of(std::size_t transaction) const {
    const std::size_t begin = transaction == 0 ? 0 : ends[transaction - 1];
    return std::span(locks).subspan(begin, ends[transaction] - begin);
  }
};

/// If a transaction asks for a lock twice, it is exclusive if one of the two requests is. The error
/// calls the file `name`, and says which line is wrong.
tl::expected<TraceLocks, std::string> read_trace(std::istream& lines, std::string_view name);

/// Which clients, of all of a run, a process has: neighbours. Shares of one run differ by at most
/// one client. In a run of one process it has all of them.
struct Share {
  int rank = 0, ranks = 1;
  int clients = 1;  ///< of the whole run

  /// How many it has.
  int count() const { return clients / ranks + (rank < clients % ranks ? 1 : 0); }

  /// The number, among all clients, of its i-th one.
  int number(int i) const {
    const int longer = clients % ranks;  // the first shares have one client more
    return rank * (clients / ranks) + (rank < longer ? rank : longer) + i;
  }

  /// Whether it takes the n-th of what all clients of the run take turns at, such as the arrivals
  /// of an open loop. Shares take theirs evenly and not in bursts, each in proportion to its
  /// clients.
  bool takes(std::uint64_t n) const {
    const auto turn = n % static_cast<std::uint64_t>(clients);
    return turn % static_cast<std::uint64_t>(ranks) == static_cast<std::uint64_t>(rank);
  }

  /// How many of the first n it takes.
  std::uint64_t part_of(std::uint64_t n) const {
    const auto all = static_cast<std::uint64_t>(clients), step = static_cast<std::uint64_t>(ranks);
    const std::uint64_t rest = n % all, first = static_cast<std::uint64_t>(rank);
    const std::uint64_t of_rest = rest > first ? (rest - first + step - 1) / step : 0;
    return n / all * static_cast<std::uint64_t>(count()) + of_rest;
  }
};

/// A few keys that get much of the load. Every so often others take their place.
struct HotSet {
  double share = 0;                     ///< of the sections that want a hot key, 0 to 1
  int keys = 0;                         ///< that are hot at a time
  std::optional<Duration> moves_every;  ///< nothing: they stay hot

  /// Reads "share=50%,keys=2500,move=10s", in any order; the move may be missing.
  static tl::expected<HotSet, std::string> parse(std::string_view text);
  /// In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const HotSet&) const = default;
};

enum class Arrival { constant, poisson };

/// Where the protected counter lives.
enum class Resource { memory, redis, redis_fenced };

/// How a section takes several locks: in the order of their keys, which excludes deadlocks; as
/// drawn; or all or none, in which case a section waits for no lock while it holds another one.
enum class LockOrder { sorted, drawn, all_or_nothing };

/// What the clients do.
struct Workload {
  std::string load;  ///< its name, if it has one
  int clients = 8;
  std::optional<int> threads;     ///< of several clients; nothing: see generator_threads()
  int keys = 1;                   ///< distinct locks; not used with key_per_client
  bool key_per_client = false;    ///< each client its own lock: no contention
  double key_skew = 0;            ///< Zipf exponent over the keys
  std::optional<HotSet> hot_set;  ///< in its place
  /// Says which locks each section takes, in place of the keys, modes and numbers of locks drawn;
  /// `keys` is then that of the trace.
  std::optional<Trace> trace;
  double shared_share = 0;    ///< of the locks that are taken in shared mode
  int locks_per_section = 1;  ///< different ones
  LockOrder lock_order = LockOrder::sorted;
  /// How long a section that holds a lock waits for the next one before it gives all back and
  /// begins again; only if they are taken as drawn.
  Duration deadlock_timeout = std::chrono::milliseconds(100);
  DurationDistribution hold, think;
  /// A canary's load, with a key for each client: the first half of the clients follow the schedule
  /// and hold nothing, except once in this time (see Meetings). Then a rival from the second half,
  /// which does nothing else, asks for the lock meanwhile.
  std::optional<Duration> meet_every;
  std::optional<double> rate;  ///< open loop: sections per second over all clients
  Arrival arrival = Arrival::poisson;
  /// Open loop: sections later than this count as abandoned instead of being made up for, so that a
  /// recovering store is not flooded. Nothing: all are made up for.
  std::optional<Duration> longest_lag;
  Duration duration = std::chrono::seconds(3);  ///< of the measured part, after the warm-up
  /// The run ends earlier, after this time, once `contended_grants` are reached.
  std::optional<Duration> settles_after;
  std::optional<std::uint64_t> iterations;  ///< limit on measured sections, over all clients
  Duration warmup = std::chrono::milliseconds(500);
  Duration ttl = std::chrono::seconds(10);
  Duration acquire_timeout = std::chrono::seconds(30);  ///< zero: one attempt
  Resource resource = Resource::memory;
  /// The verdict `exclusive` needs so many grants for which clients competed.
  std::uint64_t contended_grants = 1000;
  int nodes = 5;   ///< private servers for quorum locks
  Duration rtt{};  ///< added between clients and private servers
  int repeat = 1;
  std::uint64_t seed = 1;
  StrategyOptions strategy{.bounded_keys = true};

  /// Clients that are no rivals.
  int scheduled_clients() const { return meet_every ? clients / 2 : clients; }
  /// Sections may take several locks: they are transactions.
  bool has_transactions() const { return locks_per_section > 1 || trace.has_value(); }
  bool has_shared_sections() const { return shared_share > 0 || trace.has_value(); }
  int key_count() const { return key_per_client ? scheduled_clients() : keys; }
};

/// Loads with names: what a user wants to know, rather than how it is measured.
enum class NamedLoad {
  alone,      ///< one client, on loopback and with a network: what a section costs
  demand,     ///< open loop below the capacity of a key: what a client waits
  saturated,  ///< closed loop that never leaves the lock free: who is served, and who starves
  reacquire,  ///< closed loop without work: mostly one client that retakes its own lock
};
std::string_view to_string(NamedLoad load);

/// What the user decided, in place of the load.
struct Decided {
  bool clients = false, hold = false, rate = false, rtt = false;
};

/// The workloads that make up a load, of which some differ in the round-trip time. `given` says
/// what the load does not decide.
std::vector<Workload> points_of(NamedLoad load, const Workload& given, const Decided& decided);

/// As a result describes it.
results::Load load_of(const Workload& workload);

/// The share of all sections that want the key that is wanted most. Of several locks of a section
/// it is exact if all keys are drawn alike, and otherwise an upper bound.
double busiest_key_share(const Workload& workload);

}  // namespace lockbench::loadgen
