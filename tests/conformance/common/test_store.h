#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"
#include "testbed/servers/server.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::test {

/// One server of the suite's kind, or several independent ones, with a view of its data that does
/// not use the code under test. For one thread. Throws std::runtime_error on failure.
class TestStore {
 public:
  virtual ~TestStore() = default;
  /// The only server, or the first.
  virtual testbed::Server& server() = 0;
  /// All servers of one lock.
  virtual std::vector<testbed::Server*> servers() { return {&server()}; }

  /// Removes all locks and all data of earlier checks.
  virtual void clear() = 0;
  /// The keys of all locks in the store; for locks without a key, some name.
  virtual std::vector<std::string> keys() = 0;
  /// When the lock will be free at the latest, on our steady clock, according to the store. Nothing
  /// if it will not.
  virtual std::optional<TimePoint> end_of(const std::string& key) = 0;
  /// Takes these locks from their holders, like a failover or an operator.
  virtual void take_away(const std::vector<std::string>& keys) = 0;
  /// Data that would stay in the store for ever if all clients died now.
  virtual std::vector<std::string> staying() { return {}; }
  /// Number of connections, without our own.
  virtual int other_connections() = 0;
  /// Number of the server's replicas.
  virtual int replicas() { return 0; }
  /// Number of clients in the server's own queues.
  virtual int waiting() { return 0; }
  /// Waits until locks are available again after servers have come back.
  virtual void settle() {}
  /// Sees every command that reaches one of the servers. Null if the store has no such feature.
  virtual std::unique_ptr<RedisMonitor> monitor(std::size_t /*server*/ = 0) { return nullptr; }

  virtual bool exists(const std::string& key);
  /// Whether the store is empty, or will be once the server has noticed closed connections.
  bool becomes_empty();
};

/// When a candidate that begins to watch this record of a lease by observation now may take it
/// over; nothing if it is not one.
std::optional<TimePoint> end_of_record(std::string_view record);

/// How many connections of this machine lead to that port, by the kernel.
int connections_to(std::uint16_t port);

/// The option value for a server of the suite's kind on this port of 127.0.0.1.
std::string url_of(std::uint16_t port);

struct Property;

/// A kind of store that the program can test.
struct TestedStore {
  /// The name of its folder, and the value of `--store=`.
  std::string_view name;
  /// Backends whose strategies are tested. Suffix "-quorum": strategies on several of its servers;
  /// "-replicated": strategies that need replicas.
  std::vector<std::string_view> backends;
  /// Starts on first use and ends with the program. Leave its server running.
  TestStore& (*shared)();
  /// A new one, for checks that kill or freeze its server.
  std::unique_ptr<TestStore> (*make)();
  /// Checks only for this store, such as of its sessions. May be null.
  std::vector<Property> (*properties)() = nullptr;
};

/// Implements `shared` and `make` for stores that can be created at any time.
template <class Store>
TestStore& the_one() {
  static Store tested;
  return tested;
}
template <class Store>
std::unique_ptr<TestStore> another() {
  return std::make_unique<Store>();
}

struct TestedStoreRegistration {
  explicit TestedStoreRegistration(TestedStore store);
};

/// The store named by `--store=`. Throws std::runtime_error without it.
const TestedStore& tested_store();

inline std::vector<std::string_view> tested_backends() { return tested_store().backends; }
/// Those of these strategies that are on the tested store.
std::vector<std::string_view> of_tested_store(std::vector<std::string_view> strategies);
inline TestStore& shared_store() { return tested_store().shared(); }
inline std::unique_ptr<TestStore> own_store() { return tested_store().make(); }

}  // namespace lockbench::test
