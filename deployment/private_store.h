#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "deployment/failure.h"
#include "strategies/duration.h"
#include "strategies/registry.h"
#include "testbed/process/shims.h"
#include "testbed/proxy/mesh.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::deployment {

/// The delay each way of a line that adds `rtt` to a round trip, rounded up.
inline Duration each_way(Duration rtt) { return (rtt + Duration(1)) / 2; }
/// A proxy in front of the server on this port, which adds `rtt` to each round trip. Throws Failure
/// if it cannot be started.
std::unique_ptr<testbed::Proxy> line_to(testbed::Testbed& host, std::uint16_t port,
                                        Duration rtt = {});

/// The purpose of private servers, which decides how they are started.
enum class Setup {
  load,        ///< they carry a load; as durable as the store is by default
  shared,      ///< no faults
  volatile_,   ///< they are restarted, and come back without their data
  durable,     ///< they are restarted, and keep all data on disk
  unsynced,    ///< their host crashes; as durable as the store is by default
  clocked,     ///< their wall clock is moved
  replicated,  ///< a replica takes the primary's place, or a member the leader's
  cramped,     ///< their memory fills up
  watched,     ///< Sentinels promote a replica when the primary dies
  split,       ///< one member of a cluster is cut off from the others
  sharded,     ///< the servers of a cluster each have a part of the keys
  pooled,      ///< clients reach them through a pooler that gives each transaction any session
};

/// The wanted private servers of one store.
struct StoreRequest {
  Setup setup = Setup::load;
  int nodes = 1;                 ///< independent servers, for locks that live on a quorum of them
  int members = 1;               ///< of a cluster
  int replicas = 0;              ///< that follow a primary
  bool sharded = false;          ///< servers that each have a part of the keys
  std::uint32_t clients = 1000;  ///< connections that each server has room for
};

/// Conditions that a server tolerates for a limited time only.
enum class Limit {
  statement,         ///< a long statement, waiting included
  lock_wait,         ///< the wait for a lock inside a statement
  idle_transaction,  ///< an open transaction that does nothing
  idle_session,      ///< a session that does nothing, in a transaction or not
  silent_client,     ///< a client whose host does not even answer TCP keepalive probes
  unacknowledged,    ///< a client whose host does not acknowledge data
};

/// The shortest session timeout that clients keep alive reliably on a busy machine.
inline constexpr std::chrono::seconds kShortestSession{2};

/// Private servers of one store, and their faults. A fault that this store cannot have, or that
/// fails, throws Failure. Thread-safe with Setup::shared; otherwise for one thread at a time.
class PrivateStore {
 public:
  using Servers = std::vector<testbed::Server*>;

  /// `store`: StoreKind's name. `keeps_data`: over a restart(). `shortest_session`: zero
  /// without sessions.
  explicit PrivateStore(std::string_view store, bool keeps_data = false,
                        Duration shortest_session = {})
      : store_(store), keeps_data_(keeps_data), shortest_session_(shortest_session) {}
  virtual ~PrivateStore() = default;

  /// The servers that clients use now: all nodes, all members, or the primary.
  virtual Servers servers() const;
  /// These and their replicas.
  virtual Servers every_server() const { return servers(); }
  /// The number of replicas that follow the primary.
  virtual int replicas() const { return 0; }
  /// The servers that a fault must hit to take the store away from a lock: all members of a
  /// cluster, otherwise the first server.
  Servers whole_store() const;
  /// The URLs for clients: one for each node, through the proxies if there are any.
  virtual std::vector<std::string> urls() const;
  /// The URLs as endpoints, or with only these ports: of proxies, or of some members of a cluster.
  virtual Endpoints endpoints(const std::vector<std::uint16_t>& ports = {}) const;
  /// The nodes' ports. Throws Failure for a cluster, whose clients choose a member themselves.
  virtual std::vector<std::uint16_t> ports() const;

  /// Puts a proxy in front of each server, which adds `rtt` to each round trip.
  void draw_lines(testbed::Testbed& host, Duration rtt);
  const std::vector<std::unique_ptr<testbed::Proxy>>& lines() const { return lines_; }

  /// CPU time used by the servers and their replicas so far; nothing if one of them has ended.
  std::optional<double> cpu_seconds() const;

  Duration shortest_session() const { return shortest_session_; }
  /// The timeline's words for the target of the faults below.
  virtual std::string struck() const { return "the store"; }

  /// Another user deletes this key. False if nothing was deleted: the key may not exist, or the
  /// deletion itself may have to wait for the lock.
  virtual bool remove_key(const std::string& key);
  /// The key's value; empty if the key does not exist.
  virtual std::string value_of(const std::string& /*key*/) { cannot("show what they hold"); }
  /// The server dies without warning and comes back.
  virtual void restart();
  /// The server's host crashes and comes back: what the server had not synced is lost. Returns how
  /// many bytes.
  virtual std::uintmax_t crash_host() { cannot("lose what they have not synced"); }
  /// The server's wall clock jumps ahead.
  virtual void jump_clock(Duration ahead);
  /// Memory fills up with keys that live longer than this one, until this one is gone or memory was
  /// filled several times over. `policy`: Redis's eviction policy; memcached has only one.
  virtual void fill_memory(const std::string& /*key*/, const std::string& /*policy*/) {
    cannot("have their memory filled");
  }
  /// Of a sharded store: the faults that strike a primary strike that of the key's shard.
  virtual void aim_at(const std::string& /*key*/) { cannot("be aimed at"); }
  /// Of a sharded store: the key's slot moves to another shard; at first its keys, then the slot.
  virtual void move_keys() { cannot("move keys"); }
  virtual void move_slot() { cannot("move keys"); }
  /// Of a sharded store: the primary dies, and its replica too.
  virtual void lose_shard() { cannot("lose a shard"); }
  /// Cuts off the replica, or one following member, from the leader.
  virtual void cut_replication();
  /// The primary dies and the replica takes its place; urls() then leads there.
  virtual void fail_over();
  /// An administrator ends the session that holds the key's lock.
  virtual void end_session(const std::string& /*key*/) { cannot("end a session"); }
  /// Sets the limit for sessions that begin from now on.
  virtual void limit(Limit /*what*/, std::chrono::seconds /*time*/) {
    cannot("limit their sessions");
  }
  /// A client's other work in the store: opens a transaction, and leaves it idle.
  virtual void begin_transaction() { cannot("open a transaction"); }
  /// Waits for the key's lock in a statement of that transaction, for 10 s at most. The error is
  /// the server's, if it ended the wait.
  virtual tl::expected<void, std::string> wait_in_transaction(const std::string& /*key*/) {
    cannot("wait in a transaction");
  }
  /// Sends a statement that takes this long, and dies before its answer: closes the connection.
  /// `mark` names it. Thread-safe.
  virtual void abandon_statement(const std::string& /*mark*/, std::chrono::seconds /*time*/) {
    cannot("be left alone with a statement");
  }
  /// Whether the statement of that name still runs. Thread-safe.
  virtual bool runs_statement(const std::string& /*mark*/) {
    cannot("be left alone with a statement");
  }
  /// Whether the transaction still existed.
  virtual bool commit_transaction() { cannot("commit a transaction"); }
  /// Cuts off the replica that is to take the primary's place; the others go on.
  virtual void cut_off_successor() { cannot("cut off one replica alone"); }

  // Of a cluster, whose members count from 0.
  virtual std::size_t members() const { return servers().size(); }
  std::vector<std::size_t> others_than(std::size_t member) const;
  /// The leader, or a follower.
  virtual std::size_t member(bool leads) const;
  /// For endpoints().
  virtual std::uint16_t port_of(std::size_t member) const { return servers().at(member)->port(); }
  /// The member dies, and comes back with its data.
  virtual void restart_member(std::size_t member) { need(servers().at(member)->restart(true)); }
  /// Nothing passes between this member and the others; clients reach all of them.
  virtual void isolate(std::size_t member);
  virtual void reunite();

  /// The leader of a cluster stands still, and goes on.
  virtual void freeze_leader();
  virtual void thaw_leader();

  // One of several nodes, from 0. The faults above that strike one server strike node 0.
  virtual void kill_node(std::size_t node) { need(servers().at(node)->kill_hard()); }
  virtual void freeze_node(std::size_t node) { need(servers().at(node)->freeze()); }
  /// The node comes back empty.
  virtual void revive_node(std::size_t node) { need(servers().at(node)->restart(false)); }

  // For servers under load, which keep their data.
  /// The primary or leader dies.
  virtual void kill_leader();
  /// After kill_leader(): makes another server lead, on the same URLs, and brings the killed one
  /// back as its follower.
  virtual void replace_leader();
  /// After a restart of the servers: makes all follow the primary again.
  virtual void settle() {}

 protected:
  void add(testbed::StartedServer started) { servers_.push_back(need(std::move(started))); }
  /// The members of a cluster. Restarted ones must keep their data.
  void add_cluster(testbed::StartedCluster started) {
    servers_ = need(std::move(started));
    cluster_ = true;
  }
  /// A movable clock; null if the setup does not need one.
  const testbed::ClockShim* clock_for(testbed::Testbed& host, Setup setup);
  /// A network between members in which one can be cut off; null if the setup does not need one.
  testbed::Mesh* mesh_for(testbed::Testbed& host, Setup setup);

  bool keeps_data() const { return keeps_data_; }

 private:
  [[noreturn]] static void cannot(std::string_view what);
  std::vector<std::string> urls_on(const std::vector<std::uint16_t>& ports) const;
  testbed::Server& leader() const;

  const std::string store_;
  const bool keeps_data_;
  const Duration shortest_session_;

  std::unique_ptr<testbed::ClockShim> clock_;  ///< outlives its servers
  std::unique_ptr<testbed::Mesh> mesh_;        ///< likewise
  std::vector<std::unique_ptr<testbed::Server>> servers_;
  bool cluster_ = false;
  testbed::Server* behind_ = nullptr;  ///< the cut-off member
  testbed::Server* killed_ = nullptr;  ///< a leader
  testbed::Server* frozen_ = nullptr;  ///< likewise
  std::vector<std::unique_ptr<testbed::Proxy>> lines_;
};

/// Does `work` on all servers in parallel, as members of a cluster wait for each other. Throws
/// Failure for the first error.
void each(const PrivateStore::Servers& servers,
          const std::function<tl::expected<void, std::string>(testbed::Server&)>& work);

/// Why private servers could not be started.
struct NotStarted {
  enum class Why {
    failed,        ///< they could not be started here
    never_needed,  ///< this store cannot have the fault
    unplayable,    ///< it may have the fault, but lockbench cannot cause it
  };
  std::string reason;
  Why why = Why::failed;
};

/// Thrown for a setup that this kind of store does not support.
struct NotOffered : Failure {
  explicit NotOffered(const std::string& reason,
                      NotStarted::Why cause = NotStarted::Why::never_needed)
      : Failure(reason), why(cause) {}
  const NotStarted::Why why;
};

/// The program's version by --version; "unknown" if it has none.
std::string version_of_program(const std::filesystem::path& program);

/// How the private servers of one store are found and started. Stands in the store's file:
///   const PrivateStoreRegistration private_redis({.name = "redis", ...});
struct PrivateStoreKind {
  std::string_view name;     ///< of its StoreKind
  std::string_view program;  ///< of a server
  tl::expected<std::filesystem::path, std::string> (*find_program)() = nullptr;
  std::string (*version)(const std::filesystem::path& program) = version_of_program;
  /// Throws Failure, or NotOffered. Thread-safe.
  std::unique_ptr<PrivateStore> (*start)(testbed::Testbed& host,
                                         const StoreRequest& request) = nullptr;
  bool clusters = false;    ///< its servers can form a cluster
  bool shards = false;      ///< they can share the keys
  bool replicates = false;  ///< a replica can take its primary's place
  bool warms_up = false;    ///< its servers get faster while they run
};

using PrivateStoreRegistration = Named<PrivateStoreKind>;

/// By name.
inline std::vector<const PrivateStoreKind*> private_store_kinds() {
  return PrivateStoreRegistration::all();
}
/// Null if the store needs no server.
inline const PrivateStoreKind* find_private_store_kind(std::string_view name) {
  return PrivateStoreRegistration::find(name);
}

tl::expected<std::unique_ptr<PrivateStore>, NotStarted> start_private_store(
    const PrivateStoreKind& kind, testbed::Testbed& host, const StoreRequest& request);

}  // namespace lockbench::deployment
