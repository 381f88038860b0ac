#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::watch {

/// How an application represents a lock in its store, judged by the data found there.
enum class Shape {
  unknown,
  token,           ///< a string that names the owner: SET NX PX
  redisson_hash,   ///< a hash from owner thread to its re-entrancy count
  etcd_queue,      ///< keys below a prefix, in the order of their create revisions
  etcd_key,        ///< one key that exists while the lock is held
  sequence_nodes,  ///< ephemeral sequence nodes below the lock's node: Curator, kazoo
  ephemeral_node,  ///< one ephemeral node that exists while the lock is held
  advisory,        ///< pg_advisory_lock, GET_LOCK
  table_row,       ///< a row of a lock table with owner and end: ShedLock
  record,          ///< a value that names the holder, which rewrites it to renew: Kubernetes' Lease
  permits,         ///< one node for each permit, and a queue beside them: Curator's semaphore
};

/// A holder of a lock, or a waiter. `owner` is as the store has it; the ledger keeps only a hash.
struct Party {
  std::string owner;                 ///< empty: not looked at yet; a later sighting may name it
  bool shared = false;               ///< in a shared mode
  std::uint64_t entries = 1;         ///< re-entrancy count of a holder
  std::optional<TimePoint> since{};  ///< when it began to hold or wait, if the store knows
  std::string about{};  ///< for people, such as process and address; empty: shown by its owner
};

/// How a holding ended, if the store tells.
enum class Ending {
  released,      ///< key deleted, node removed or transaction ended
  expired,       ///< its TTL ran out
  session_lost,  ///< its session expired or its connection broke
};

/// The whole state of one lock at one time. The ledger derives events from two successive ones.
/// Plain data.
struct Sighting {
  std::string lock;  ///< its name in the store, without the parts for waiters or sequences
  TimePoint at{};    ///< of the state; never decreases for one lock
  Shape shape = Shape::unknown;
  std::vector<Party> holders;                 ///< empty: the lock is free
  std::optional<std::vector<Party>> waiting;  ///< in the order of service, if any; nothing: the
                                              ///< store does not tell who waits
  std::optional<std::uint64_t> waiters;       ///< their number; nothing: the store does not tell
  /// Time until the holding expires. Nothing with `no_ttl`: never. Nothing without it: unknown, or
  /// the holding ends with a session.
  std::optional<Duration> ttl_left;
  bool no_ttl = false;
  /// The store itself may have moved the expiry, as a new etcd leader does: no renewal.
  bool extended_by_store = false;
  /// How the previous holding ended; nothing: the store does not tell, so the ledger judges by the
  /// TTL.
  std::optional<Ending> ended;
  /// The first look at this lock since the watch began or saw again: a holder without `since` has
  /// held it for an unknown time. A source whose `changes` are not always 0 may leave it to them: 0
  /// means the same.
  bool first_look = false;
  /// The state was read long after the changes behind it: it tells neither when the holding began
  /// nor how the one before it ended.
  bool late = false;
  /// Tells only who waits, or how many: the rest is as in the previous sighting.
  bool only_waiters = false;
  /// Minimum number of changes of the lock's key behind this sighting. More than one if events were
  /// coalesced, 0 if the state was sampled.
  std::uint64_t changes = 0;
  /// Contenders since the previous sighting that are known to have been missed; most held the lock.
  std::uint64_t missed_holdings = 0;
  std::optional<TimePoint> changed_since;  ///< the first of them; nothing: not known
  std::optional<std::uint64_t> fence;      ///< the holder's fencing number
};

/// How well a source sees. Every figure states its accuracy.
enum class Accuracy {
  exact,     ///< each change, in order
  at_least,  ///< changes in quick succession are merged into one: counts are lower bounds
  sampled,   ///< periodic looks: changes between two looks are missed
};

/// What a source can see, for people and for the result file.
struct SourceFacts {
  std::string store;     ///< "redis"
  std::string endpoint;  ///< for display, without secrets
  std::string way;       ///< method: "CLIENT TRACKING", "keyspace notifications", "watch"
  Accuracy accuracy = Accuracy::sampled;
  std::string waiters;              ///< where it sees waiters: "LLEN of queues"; empty: nowhere
  std::vector<std::string> unseen;  ///< completes "cannot see ...", one each
  std::string progress;  ///< of the first look at all locks, "9,000 keys left"; empty: done
};

/// Receives the reports of sources. Thread-safe; does not block. Sightings of one lock come in
/// order.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Called before the first sighting, and again if the facts change.
  virtual void facts(const SourceFacts& facts) = 0;
  virtual void seen(const std::string& endpoint, Sighting sighting) = 0;
  /// If the user named no locks: a pattern of keys that look like locks. They are not followed. May
  /// repeat.
  virtual void proposed(std::string pattern) = 0;
  /// From `at` on the source sees nothing, until `sees` is called. May repeat with another reason.
  virtual void blind(const std::string& endpoint, TimePoint at, std::string reason) = 0;
  /// The source sees again. Events in between are lost: each lock's first sighting afterwards
  /// starts afresh and ends no holding.
  virtual void sees(const std::string& endpoint, TimePoint at) = 0;
  /// Reports changes that were not looked at, for want of budget or memory.
  virtual void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) = 0;
  /// Reports a key that matches a pattern but whose value is no lock's. May repeat.
  virtual void no_lock(const std::string& /*endpoint*/, const std::string& /*key*/) {}
  /// All changes until `at` have been reported, but later ones wait for a look. TimePoint::max():
  /// none waits, as without a call. After blind(), only until sees().
  virtual void seen_until(const std::string& /*endpoint*/, TimePoint /*at*/) {}
};

/// The user's settings for a watch.
struct Request {
  std::vector<std::string> locks;        ///< patterns with * and ?; empty: only propose patterns
  std::vector<std::string> exclude;      ///< patterns of names that are no locks to follow
  double budget = 200;                   ///< commands per second to each server, at most
  std::uint64_t most_locks = 1'000'000;  ///< locks followed at the same time, at most
  Duration command_timeout = std::chrono::seconds(3);
};

/// Watches the locks of one server or cluster, read-only. Constructing it does not connect.
class Source {
 public:
  virtual ~Source() = default;
  /// The endpoint as its facts name it.
  virtual const std::string& endpoint() const = 0;
  /// Connects and checks its permissions. The error names the endpoint and what is missing; tell
  /// the sink that it is blind before calling run() after it.
  virtual tl::expected<void, std::string> reach(const std::stop_token& stop) = 0;
  /// Watches until the stop; returns within 100 ms of it. Reconnects to a lost server with growing
  /// pauses, and tells the sink that it is blind meanwhile. Does not throw. Needs its own thread.
  /// May be called again after the sink was told that it is blind.
  virtual void run(Sink& sink, const std::stop_token& stop) = 0;
  /// Commands sent so far. Thread-safe.
  virtual std::uint64_t commands() const = 0;
};

/// Makes the source for one server or cluster. The error says what is wrong with the URL or the
/// request, or why the store cannot be watched.
tl::expected<std::unique_ptr<Source>, std::string> make_source(const std::string& store,
                                                               const std::string& url,
                                                               const Request& request);

}  // namespace lockbench::watch
