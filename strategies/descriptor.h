#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "strategies/duration.h"
#include "strategies/env.h"
#include "strategies/lease.h"
#include "strategies/lock_strategy.h"
#include "strategies/services.h"
#include "strategies/waiting/wait_policy.h"

namespace lockbench {

/// How a dead client's lock is freed. A session ends after its time-out, or with its connection.
enum class Expiry { none, ttl, session };

/// How a release or renewal checks the owner before it changes the store.
enum class OwnerCheck {
  none,         ///< not at all: it also affects another client's lock
  local_clock,  ///< by the client's clock: wrong if that clock is wrong or slow
  two_steps,    ///< in the store, but not in one step with the change
  atomic,       ///< in the store, in one step with the change
};

/// The outcome of a fault, as the hazard scenarios name it.
enum class HazardOutcome {
  safe,
  double_grant,
  lost_update,
  foreign_release,
  foreign_renewal,
  stuck,
  self_deadlock,
  unavailable,
  refused,
  recovers,
  known_loss,
  not_applicable,
  not_played,
};

struct KnownHazard {
  std::string_view scenario;
  HazardOutcome outcome;
};

struct Traits {
  Expiry expiry = Expiry::ttl;
  OwnerCheck release_check = OwnerCheck::none;
  /// Nothing if it cannot be renewed.
  std::optional<OwnerCheck> renew_check;
  /// A client's locks are held in one transaction: each stays taken until the last is released.
  bool released_together = false;
  /// False for controls, which are for comparison and may break exclusion.
  bool promises_exclusion = true;
  /// A control that takes no lock, but loses no update: acquire() reads a number of the key, with
  /// the mode `shared` for sure, as the lease's fencing number. release() writes that plus one; it
  /// is `not_owner` if another client has written since, and the work must be done again.
  bool updates = false;
  /// Excludes threads of one process only.
  bool one_process = false;
  /// Its session is its connection: there is no TTL, and the server frees the lock as soon as it
  /// notices that the connection is gone.
  bool ends_with_connection = false;
  /// Each of its waits at the server has a limit, which replaces the server's own for locks.
  bool own_wait_limit = false;
  /// It ends with its connection, and yet works behind a transaction pooler.
  bool pooled = false;
  /// The end of a TTL is written and judged by the clients' wall clocks.
  bool by_client_clocks = false;
  /// A request that is refused gives the holder's lock a new TTL.
  bool prolonged_by_contenders = false;
  /// A candidate takes it over only after it has watched an unchanged record for a whole TTL, by
  /// its own clock. The record stays after a release, and the store never ends it.
  bool observed = false;
  /// A semaphore: StrategyOptions::permits clients may be inside at once.
  bool permits = false;
  /// After a holder's failure no client is granted the lock for StrategyOptions::lock_delay.
  bool lock_delay = false;
  /// The store supports TTLs in whole seconds only.
  bool ttl_in_seconds = false;
  /// The store may keep the lock this much longer than the TTL.
  Duration kept_longer{};
  /// The store counts acquisitions of its holder. See also Library::reentry.
  bool reentrant = false;
  bool fencing = false;
  /// When a timer renews it by default; nothing: only if the user asks for it.
  std::optional<RenewalTiming> renews{};
  /// A timer can renew it.
  bool renewable = false;
  bool fair = false;
  /// Has a shared mode: shared holders exclude exclusive ones, but not each other.
  bool shared = false;
  /// Independent servers per lock: 0: none, 1: one, 2: a quorum of several.
  int nodes = 1;
  /// Its server must have replicas.
  bool needs_replicas = false;
  /// How a client waits by default, and the choices of `--wait`.
  WaitPolicy waiting = WaitPolicy::poll(std::chrono::milliseconds(100));
  std::vector<WaitKind> waiting_choices = {WaitKind::poll, WaitKind::backoff};
};

/// Properties of a store's servers that matter to locks, loads and hazards.
struct StoreTraits {
  bool servers = true;         ///< false: locks live in this process
  bool one_thread = false;     ///< executes all commands on one thread
  bool keeps_counter = false;  ///< `--resource` can keep the counter in it
  bool members_agree = false;  ///< each write is on a majority of its members
  /// A leader that stood still ends sessions that were renewed at its successor.
  bool frozen_leader_ends_sessions = false;
  bool asynchronous_replicas = false;  ///< a failover may lose the latest writes
  bool sentinels = false;              ///< they replace a failed primary
  bool shards = false;                 ///< a cluster's servers can each have a part of the keys
  bool expires_by_wall_clock = false;
  bool evicts_keys = false;   ///< when memory is full, keys of any size, by a policy
  bool evicts_items = false;  ///< when their memory is full, items of the lock's size
  bool transactions = false;  ///< on sessions
  bool poolers = false;       ///< may share its sessions between transactions
  bool user_timeout = false;  ///< ends connections whose data stays unacknowledged
  int connections = 0;        ///< of clients, by default
  /// Its settings that end the connections of a dead host after some seconds.
  std::string_view keepalives{};
};

/// A backend's traits; for an unknown one the defaults, which fit any store with servers.
const StoreTraits& store_traits(std::string_view backend);

/// The URLs of the stores, as the user gave them, with secrets; the key is server_set().
using Endpoints = std::map<std::string, std::vector<std::string>, std::less<>>;

struct StrategyOptions {
  std::optional<WaitPolicy> wait;     ///< in place of the default, if the strategy supports it
  std::optional<RenewPolicy> renew;   ///< in place of the default, if it is renewable
  std::optional<Duration> renew_cap;  ///< no renewal beyond this time after the grant
  bool renew_retry = false;           ///< see RenewalTiming::retries_soon
  int permits = 1;                    ///< of a semaphore
  /// Of a lease by observation: its holder counts it as lost this long after the latest renewal.
  std::optional<Duration> renew_deadline;
  bool prefer_writers = false;  ///< redis-read-write: new readers wait for writers that wait
  /// postgres-lease: a release leaves the lock taken until this time after its grant.
  Duration lock_at_least{};
  std::optional<Duration> node_timeout;           ///< how long to wait for one node of a quorum
  Duration lock_delay = std::chrono::seconds(1);  ///< chubby: pause of grants after a failure
  Duration command_timeout = std::chrono::seconds(3);  ///< the longest wait for one answer
  Duration after_stop = Timeouts::kAfterStop;          ///< for all work left to a stopped call
  int clients_per_process = 64;                        ///< of a client program
  std::optional<int> wait_replicas;  ///< how many replicas a lock waits for, if its server has some
  Duration wait_timeout = std::chrono::milliseconds(100);  ///< how long to wait for them

  Timeouts timeouts() const { return {command_timeout, after_stop}; }
};

/// How many exclusive clients may be inside at once.
inline int holders_at_once(const Traits& traits, const StrategyOptions& options) {
  return traits.permits ? options.permits : 1;
}

/// With a shorter session a lock may have two holders although the store works.
struct SafeSession {
  Duration shortest{};
  std::string_view because{};
};

/// The parameters of a new strategy. All references must outlive the strategy.
struct Context {
  const Endpoints& endpoints;
  const StrategyOptions& options;
  Env& env;
  Services& services;
  int client = 0;  ///< this client's number in its process
  Duration ttl{};  ///< of its locks; zero: not known before the first request
  // Filled in by make_strategy, from the options or the defaults:
  std::vector<std::string> urls{};  ///< of its servers
  WaitPolicy waiting{};
  std::optional<RenewalTiming> renewing{};
};

/// Whether the holder of a lock may acquire it again, by a library's source: Redisson's
/// RedissonLock, -FairLock, -ReadLock, -WriteLock, -FencedLock and -MultiLock count in the lock's
/// hash; Curator's InterProcessMutex (threadData) and Spring's RedisLockRegistry (localLock) count
/// in the process; etcd's v3lock.proto says "locking twice with the same lease is a no-op". Not:
/// redis-py, python-redis-lock (AlreadyAcquired), kazoo, go-zookeeper (ErrDeadlock), ShedLock.
enum class Reentry {
  none,
  counted,    ///< free after as many releases
  uncounted,  ///< free after the first release
};

/// A library that implements the protocol of a strategy.
struct Library {
  std::string_view language, name;
  /// Its settings, by its own names; "{ttl}" stands for the time to live.
  std::string_view settings;
  /// Mostly the library's own doing, without a command: so it need not be in Traits.
  Reentry reentry = Reentry::none;
  bool similar = false;  ///< its lock is another one, so it does not implement the strategy
};

/// All that the rest of lockbench knows about a strategy; stands at the end of the strategy's file.
/// The command line, the documentation, the conformance tests and the hazard matrix derive from it.
struct Descriptor {
  std::string_view name;
  /// "redis"; "local" without a store.
  std::string_view backend;
  std::string_view summary;  ///< one line
  /// The command of the client program that has this lock; empty: it is lockbench's own.
  std::string_view program{};
  /// The commands it sends, as in the store's manual: {"SET key token NX PX ttl"}.
  std::vector<std::string_view> acquire_commands{};
  std::vector<std::string_view> release_commands{};
  std::vector<std::string_view> renew_commands{};  ///< if a timer renews it by default
  std::string_view source;                         ///< article, paper or documentation
  /// Represents its family in an overview: people deploy it.
  bool typical = false;
  /// The strategy that replaces it in practice, and why; empty: none does.
  std::string_view superseded_by{}, superseded_because{};
  std::vector<Library> libraries{};
  SafeSession safe_session{};
  Traits traits;
  /// Hazards that break it. with_known_hazards() adds those that follow from the traits, so list
  /// only the others. Tables show the gravest; of equals, the first.
  std::vector<KnownHazard> hazards{};
  std::function<std::unique_ptr<LockStrategy>(const Context&)> make;
  /// Suffixes of the lock's key that name every key it may leave in the store.
  std::vector<std::string_view> key_suffixes = {""};
  /// Why this build lacks it. Then only name and backend are set.
  std::string_view not_built = {};
};

/// The strategy's key in Endpoints: its backend, or "<backend>-replicated" if it needs replicas, so
/// that other strategies run on a server without.
std::string server_set(const Descriptor& descriptor);

/// The URLs of that set, or of the backend if there is no such set; empty without servers.
std::vector<std::string> urls_of(const Descriptor& descriptor, const Endpoints& endpoints);

/// One client's instance. It waits as the options say if its protocol allows that, otherwise by its
/// default.
std::unique_ptr<LockStrategy> make_strategy(const Descriptor& descriptor, Context context);

/// Adds the hazards that follow from its traits and its store's. Listed hazards stay unchanged and
/// come first.
Descriptor with_known_hazards(Descriptor strategy);

/// A strategy's endpoints, at least one, parsed by its store's `parse`. Throws
/// std::invalid_argument for an invalid URL: the user's URLs are checked before.
template <class Parse>
auto endpoints_of(const Context& context, Parse parse) {
  using Endpoint = typename std::invoke_result_t<Parse, const std::string&>::value_type;
  if (context.urls.empty()) throw std::invalid_argument("no endpoint was given");
  std::vector<Endpoint> endpoints;
  endpoints.reserve(context.urls.size());
  for (const std::string& url : context.urls) {
    auto endpoint = parse(url);
    if (!endpoint) throw std::invalid_argument(endpoint.error());
    endpoints.push_back(*std::move(endpoint));
  }
  return endpoints;
}

/// For `Descriptor::make`.
template <class Strategy>
std::unique_ptr<LockStrategy> construct(const Context& context) {
  return std::make_unique<Strategy>(context);
}

std::string_view to_string(Expiry expiry);
std::string_view to_string(OwnerCheck check);
std::string_view to_string(HazardOutcome outcome);

}  // namespace lockbench
