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

/// A lock requested by a section.
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
/// missing. Empty lines, and lines that begin with #, are skipped.
struct Trace {
  /// Locks are numbered from 0 to below this.
  static constexpr int kMostKeys = 1 << 24;
  static constexpr std::size_t kMostLocks = 1024;  ///< of a transaction

  std::string path;
  int keys = 0;  ///< the highest lock's number plus 1
  std::uint64_t transactions = 0;

  /// Reads the whole file, and its transactions' locks into `locks`. The error names the line, and
  /// what is wrong with it.
  static tl::expected<Trace, std::string> read(const std::string& path,
                                               TraceLocks* locks = nullptr);

  bool operator==(const Trace&) const = default;
};

/// The locks of all transactions in order, each lock once per transaction.
struct TraceLocks {
  std::vector<Wanted> locks;
  std::vector<std::size_t> ends;  ///< the end of each transaction's locks

  std::span<const Wanted> of(std::size_t transaction) const {
    const std::size_t begin = transaction == 0 ? 0 : ends[transaction - 1];
    return std::span(locks).subspan(begin, ends[transaction] - begin);
  }
};

/// If a transaction requests a lock twice, it is exclusive if either request is. The error calls
/// the file `name` and gives the wrong line.
tl::expected<TraceLocks, std::string> read_trace(std::istream& lines, std::string_view name);

/// The clients of a run that one process has: consecutive ones. Shares of one run differ by at most
/// one client. In a run of one process, the share has all of them.
struct Share {
  int rank = 0, ranks = 1;
  int clients = 1;  ///< of the whole run

  /// The number of its clients.
  int count() const { return clients / ranks + (rank < clients % ranks ? 1 : 0); }

  /// Its i-th client's number among all clients.
  int number(int i) const {
    const int longer = clients % ranks;  // the first shares have one client more
    return rank * (clients / ranks) + (rank < longer ? rank : longer) + i;
  }

  /// Whether it takes the n-th item that all clients of the run share in turn, such as arrivals of
  /// an open loop. Shares take items evenly and not in bursts, each in proportion to its clients.
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

/// A few keys that get much of the load. At intervals others take their place.
struct HotSet {
  double share = 0;                     ///< of the sections that want a hot key, 0 to 1
  int keys = 0;                         ///< hot at a time
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
/// drawn; or all or none, when a section never waits for a lock while it holds another.
enum class LockOrder { sorted, drawn, all_or_nothing };

/// The work of the clients.
struct Workload {
  std::string load;  ///< its name, if it has one
  int clients = 8;
  std::optional<int> threads;     ///< for all clients; nothing: see generator_threads()
  int keys = 1;                   ///< distinct locks; not used with key_per_client
  bool key_per_client = false;    ///< each client its own lock: no contention
  double key_skew = 0;            ///< Zipf exponent over the keys
  std::optional<HotSet> hot_set;  ///< instead of key_skew
  /// Sets the locks of each section, instead of drawn keys, modes and numbers of locks; `keys` is
  /// then the trace's.
  std::optional<Trace> trace;
  double shared_share = 0;    ///< of locks taken in shared mode
  int locks_per_section = 1;  ///< different ones
  LockOrder lock_order = LockOrder::sorted;
  /// How long a section with a lock waits for the next one before it gives all back and begins
  /// again; only for LockOrder::drawn.
  Duration deadlock_timeout = std::chrono::milliseconds(100);
  DurationDistribution hold, think;
  /// A canary's load, with a key for each client: the first half of the clients follow the schedule
  /// with holds of zero, except once in this time (see Meetings). Then a rival from the second
  /// half, which does nothing else, requests the lock meanwhile.
  std::optional<Duration> meet_every;
  std::optional<double> rate;  ///< open loop: sections per second over all clients
  Arrival arrival = Arrival::poisson;
  /// Open loop: sections later than this count as abandoned instead of being made up for, so that a
  /// recovering store is not flooded. Nothing: all are made up for.
  std::optional<Duration> longest_lag;
  /// Of the measured part, after the warm-up and before the last waits run out.
  Duration duration = std::chrono::seconds(3);
  /// How long its last waits may run out after it; nothing: until each has had its time.
  std::optional<Duration> run_out;
  /// The run ends earlier, after this time, once `contended_grants` are reached.
  std::optional<Duration> settles_after;
  std::optional<std::uint64_t> iterations;  ///< limit on measured sections, over all clients
  Duration warmup = std::chrono::milliseconds(500);
  Duration ttl = std::chrono::seconds(10);
  Duration acquire_timeout = std::chrono::seconds(30);  ///< zero: one attempt
  bool proceeds_on_error = false;  ///< a section whose acquisition failed runs without its lock
  std::optional<int> pool;         ///< connections that all clients share; nothing: one for each
  bool work_connection = false;    ///< the work takes one more of them
  Resource resource = Resource::memory;
  /// The verdict `exclusive` needs this many contended grants.
  std::uint64_t contended_grants = 1000;
  int nodes = 5;   ///< private servers for quorum locks
  Duration rtt{};  ///< added between clients and private servers
  int repeat = 1;
  std::uint64_t seed = 1;
  StrategyOptions strategy{};

  /// Clients that are not rivals.
  int scheduled_clients() const { return meet_every ? clients / 2 : clients; }
  /// Sections may take several locks: they are transactions.
  bool has_transactions() const { return locks_per_section > 1 || trace.has_value(); }
  bool has_shared_sections() const { return shared_share > 0 || trace.has_value(); }
  /// A wait has its deadline, and then a command under way; only sections that began late wait for
  /// longer.
  Duration longest_run_out() const {
    return run_out.value_or(acquire_timeout + strategy.command_timeout);
  }
  int key_count() const { return key_per_client ? scheduled_clients() : keys; }
};

/// Named loads: each stands for a user's question, rather than for a way to measure.
enum class NamedLoad {
  alone,      ///< one client, on loopback and with a network: the cost of a section
  demand,     ///< open loop below the capacity of a key: a client's wait
  saturated,  ///< closed loop that never leaves the lock free: who is served, and who starves
  reacquire,  ///< closed loop without work: mostly one client that retakes its own lock
};
std::string_view to_string(NamedLoad load);

/// Settings decided by the user instead of the load.
struct Decided {
  bool clients = false, hold = false, rate = false, rtt = false;
};

/// The workloads that make up a load; some differ only in the round-trip time. `given` sets the
/// values that the load leaves open.
std::vector<Workload> points_of(NamedLoad load, const Workload& given, const Decided& decided);

/// As a result describes it.
results::Load load_of(const Workload& workload);

/// The share of all sections that want the most wanted key. If sections take several locks, exact
/// for keys drawn uniformly and otherwise an upper bound.
double busiest_key_share(const Workload& workload);

/// The busiest lock's part in the load.
struct LockShare {
  double busiest_key = 1;  ///< share of all sections: 1 / keys, more if they are skewed
  bool excludes = true;    ///< false: the lock cannot be the limit
};

/// The time of its lock that one section takes, over several runs. Times in seconds.
struct ServiceTimes {
  double hold = 0;
  /// From a release with a client waiting to the next grant, to any client; after other releases
  /// the lock is free.
  double turnaround = 0;
  double awaited_share = 0;  ///< of sections with a client waiting at their end
  double per_second = 0;     ///< sections

  /// How long a section keeps its lock from others: the hold and the handoff.
  double taken() const { return hold + awaited_share * turnaround; }
  /// The share of the time in which the busiest lock is taken, at this rate of all sections.
  double lock_taken(double rate, const LockShare& lock) const;
};
ServiceTimes service_times(std::span<const results::Run> runs);

}  // namespace lockbench::loadgen
