#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/descriptor.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/server.h"
#include "testbed/servers/testbed.h"

namespace lockbench::hazards {

/// What a play needs of the servers that it is played on.
enum class Ground {
  shared,      ///< any: it leaves them alone
  volatile_,   ///< its own, which come back without what they held
  durable,     ///< its own, which keep everything on disk
  clocked,     ///< its own, whose wall clock can be moved
  replicated,  ///< its own, with a replica that can be promoted, or of several members
  cramped,     ///< its own, with little memory
  watched,     ///< its own, with a replica that its own watchmen promote when the primary dies
};

/// What a server puts up with for a time only.
enum class Limit {
  statement,         ///< one that takes long, waiting included
  lock_wait,         ///< one for a lock, inside a statement
  idle_transaction,  ///< one that is open and does nothing
  silent_client,     ///< one whose host answers nothing, TCP's own probes included
  deaf_client,       ///< one whose host does not acknowledge what it was sent
};

/// One backend's private servers, and what can be done to them. Faults throw StageFailure where
/// they cannot be had, or go wrong. A shared one is thread-safe; the others are for one play.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Where clients find the lock's store; by way of `port`, if that is not 0.
  virtual Endpoints endpoints(std::uint16_t port = 0) const = 0;
  /// Of the store, to draw a line to.
  virtual std::uint16_t port() const = 0;
  /// Of a session that clients keep alive reliably on a busy machine; zero where they need not.
  virtual Duration shortest_session() const { return {}; }
  /// Of all independent nodes that the lock lives on, each of which takes a line of its own.
  virtual std::vector<std::uint16_t> ports() const { return {port()}; }
  /// The same as endpoints(port), by way of a line to each of ports().
  virtual Endpoints endpoints_through(const std::vector<std::uint16_t>& lines) const {
    return endpoints(lines.front());
  }

  /// What the faults below strike, as a timeline calls it.
  virtual std::string struck() const { return "the store"; }

  /// Somebody deletes exactly this key. Returns whether he did: it may not be there, or be locked
  /// against that too.
  bool remove_key(const std::string& key);
  /// What stands under the key; empty if nothing does.
  virtual std::string value_of(const std::string& key);
  /// The server dies without warning and comes back.
  virtual void restart();
  /// The server's wall clock jumps ahead.
  virtual void jump_clock(Duration ahead);
  /// Memory fills up with what lives longer than the key, until the key is gone or memory has been
  /// filled several times over.
  virtual void fill_memory(const std::string& key);
  /// Nothing more reaches the replica.
  virtual void cut_replication();
  /// The primary dies and the replica takes its place, for those who ask from now on.
  virtual void fail_over();
  /// Somebody else ends the session of whoever holds the key's lock.
  virtual void end_session(const std::string& key);
  /// For sessions that begin from now on.
  virtual void limit(Limit what, std::chrono::seconds time);
  /// A client's work in the store beside the lock: a transaction is opened, and left idle.
  virtual void begin_transaction();
  /// Waits for the key's lock inside that transaction, as one of its statements; for 10 s at most.
  /// The error is what the server ended the wait with.
  virtual tl::expected<void, std::string> wait_in_transaction(const std::string& key);
  /// Whether it was still there to be committed.
  virtual bool commit_transaction();
  /// Nothing more reaches the replica that is to take the primary's place; the others go on.
  virtual void cut_off_successor();
  // One of several nodes, from 0. What a fault above says of the server concerns node 0.
  virtual void kill_node(std::size_t node);
  virtual void freeze_node(std::size_t node);
  /// It comes back empty.
  virtual void revive_node(std::size_t node);
};

/// Why there is no such stage.
struct NoStage {
  std::string reason;
  bool by_nature = false;  ///< there can be none for this backend; else: not here, not now
};

/// What all plays of a matrix share: the testbed, servers that plays leave alone, the protected
/// counter's server, lines to servers, and the program that clients run. Thread-safe.
class House {
 public:
  struct Options {
    std::filesystem::path client_program;  ///< understands `client`; empty: this program
    testbed::TestbedOptions testbed;
    std::filesystem::path clock_shim;  ///< empty: beside this program
  };

  static tl::expected<std::unique_ptr<House>, std::string> open(Options options);

  /// A stage for plays of this strategy. Shared ones are started when first asked for.
  tl::expected<std::shared_ptr<Stage>, NoStage> stage(const Descriptor& strategy, Ground ground);
  /// A Redis that no fault touches.
  const std::string& counter_url() const { return counter_url_; }
  const std::filesystem::path& client_program() const { return options_.client_program; }
  std::unique_ptr<testbed::Proxy> line_to(std::uint16_t port);

  testbed::Testbed& testbed() { return *testbed_; }
  const Options& options() const { return options_; }

 private:
  House() = default;

  Options options_;
  std::unique_ptr<testbed::Testbed> testbed_;
  std::unique_ptr<testbed::ProxyPool> proxies_;
  std::unique_ptr<testbed::Server> counter_;
  std::string counter_url_;
  std::mutex mutex_;
  /// By the kind of servers; what could not be had is not tried again.
  std::map<std::string, tl::expected<std::shared_ptr<Stage>, NoStage>, std::less<>> shared_;
};

/// How one kind of servers' stages are set up: a backend's; with "-replicated" for strategies that
/// need replicas, with "-quorum" for those that live on several nodes. Each stands beside its
/// stage:
///   const StageRegistration registration("redis", make_stage);
using MakeStage = tl::expected<std::shared_ptr<Stage>, NoStage> (*)(House& house, Ground ground);
class StageRegistration {
 public:
  StageRegistration(std::string_view kind, MakeStage make);
};

}  // namespace lockbench::hazards
