#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

}  // namespace lockbench::watch
