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

/// How an application keeps a lock in its store, as far as what lies there tells.
enum class Shape {
  unknown,
  token,           ///< a string that names the owner: SET NX PX
  redisson_hash,   ///< a hash of owner thread to how often it holds the lock
  etcd_queue,      ///< keys below a prefix, in the order of their create revisions
  etcd_key,        ///< one key that exists while the lock is held
  sequence_nodes,  ///< ephemeral sequence nodes below the lock's node: Curator, kazoo
  ephemeral_node,  ///< one ephemeral node that exists while the lock is held
  advisory,        ///< pg_advisory_lock
  row,             ///< a row locked by a transaction
  table_row,       ///< a row of a lock table that says who holds it until when: ShedLock
};

/// Who holds a lock, or waits for it. `owner` is as the store has it; the ledger keeps a hash only.
struct Party {
  std::string owner;
  bool shared = false;               ///< holds or wants it in a shared mode
  std::uint64_t entries = 1;         ///< of a re-entrant holder
  std::optional<TimePoint> since{};  ///< where the store knows since when it holds or waits
};

/// How a holding ended, where the store tells.
enum class Ending {
  released,      ///< its key was deleted, its node removed, its transaction ended
  expired,       ///< its TTL ran out
  session_lost,  ///< its session expired or its connection broke
};

/// What a source saw of one lock at one time: its whole state, from which the ledger derives what
/// has happened since the sighting before. Plain data.
struct Sighting {
  std::string lock;  ///< its name in the store, without what belongs to waiters or sequences
  TimePoint at{};    ///< of the state; that of different sightings of a lock grows
  Shape shape = Shape::unknown;
  std::vector<Party> holders;                 ///< none: it is free
  std::optional<std::vector<Party>> waiting;  ///< in the order in which they are served, if any;
                                              ///< nothing: the store does not tell who
  std::optional<std::uint64_t> waiters;       ///< how many; nothing: the store does not tell
  /// Until the holding ends by itself. Nothing with `no_ttl`: never. Nothing without it: not known,
  /// or it ends with a session.
  std::optional<Duration> ttl_left;
  bool no_ttl = false;
  /// How the holding before ended; nothing: the store does not tell, and the ledger judges by TTL.
  std::optional<Ending> ended;
  /// The first look at this lock since the watch began or saw again: who holds it has done so for
  /// an unknown time, unless `since` says. Only needed where `changes` is always 0.
  bool first_look = false;
  /// Changes of the lock's key that this sighting stands for, at least. More than one where events
  /// were coalesced; 0 where the state was sampled.
  std::uint64_t changes = 0;
  std::optional<std::uint64_t> fence;  ///< the number that the lock's holder has
};

/// How well a source sees. Each figure says which of these it is.
enum class Accuracy {
  exact,     ///< each change, in order
  at_least,  ///< changes that follow each other closely come as one: counts are lower bounds
  sampled,   ///< states at a rate: what lies between two looks is not seen
};

/// What a source can see, for people and for the result file. Constant.
struct SourceFacts {
  std::string store;     ///< "redis"
  std::string endpoint;  ///< for display, without secrets
  std::string way;       ///< how it sees: "CLIENT TRACKING", "keyspace notifications", "watch"
  Accuracy accuracy = Accuracy::sampled;
  std::string waiters;              ///< where waiters are seen: "LLEN of queues"; empty: nowhere
  std::vector<std::string> unseen;  ///< what it cannot see, a sentence each
};

/// Takes what sources see. Thread-safe; returns at once. Sightings of one lock come in order.
class Sink {
 public:
  virtual ~Sink() = default;
  /// What the source can see, told before its first sighting and again if it changes.
  virtual void facts(const SourceFacts& facts) = 0;
  virtual void seen(const std::string& endpoint, Sighting sighting) = 0;
  /// Keys of this pattern look like locks, where the user named none. They are not followed. May
  /// come again and again.
  virtual void proposed(std::string pattern) = 0;
  /// From now on the source sees nothing, for this reason; until `sees` is called.
  virtual void blind(const std::string& endpoint, TimePoint at, std::string reason) = 0;
  /// It sees again. What happened meanwhile is missed: the first sighting of each lock afterwards
  /// is a new beginning and ends no holding.
  virtual void sees(const std::string& endpoint, TimePoint at) = 0;
  /// Changes that were not looked at, for want of budget or memory.
  virtual void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) = 0;
};

/// What the user asked a watch for.
struct Request {
  std::vector<std::string> locks;  ///< patterns with * and ?; none: propose those that look so
  double budget = 200;             ///< commands per second to each server, at most
  std::uint64_t most_locks = 1'000'000;  ///< distinct locks that are followed at once, at most
  std::vector<std::string> lock_tables;  ///< of PostgreSQL: "schema.table" or
                                         ///< "table(name,lock_until,locked_by)"
  Duration command_timeout = std::chrono::seconds(3);
};

/// Watches the locks of one server or cluster, read-only. Constructing it does not connect.
class Source {
 public:
  virtual ~Source() = default;
  /// What it watches, as its facts name it.
  virtual const std::string& endpoint() const = 0;
  /// Connects and checks that it may see. The error names the endpoint and what is missing.
  virtual tl::expected<void, std::string> reach(const std::stop_token& stop) = 0;
  /// Watches until the stop, which ends it within 100 ms. A server that is lost is tried again with
  /// growing pauses; meanwhile the sink is told that it is blind. Does not throw. On a thread of
  /// its own.
  virtual void run(Sink& sink, const std::stop_token& stop) = 0;
  /// Commands sent so far. Thread-safe.
  virtual std::uint64_t commands() const = 0;
};

/// The source of the locks of one server or cluster. The error says what is wrong with the URL or
/// the request, or names the store that cannot be watched, and why.
tl::expected<std::unique_ptr<Source>, std::string> make_source(const std::string& store,
                                                               const std::string& url,
                                                               const Request& request);

}  // namespace lockbench::watch
