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

/// A server of the kind that a suite is about, or several independent ones, and what the checks
/// want to know of it past the code under test. For one thread. Whatever cannot be had throws
/// std::runtime_error.
class TestStore {
 public:
  virtual ~TestStore() = default;
  /// The only one, or the first.
  virtual testbed::Server& server() = 0;
  /// All that one lock lives on.
  virtual std::vector<testbed::Server*> servers() { return {&server()}; }

  /// Nothing is locked, and nothing left of earlier checks.
  virtual void clear() = 0;
  /// The keys of what locks have in the store now; for what is held without a key, some name.
  virtual std::vector<std::string> keys() = 0;
  /// When the lock will be free to others at the latest, on our steady clock, as the store's
  /// content says. Nothing if it never will.
  virtual std::optional<TimePoint> end_of(const std::string& key) = 0;
  /// Takes these locks from their holders, as a failover or an operator would.
  virtual void take_away(const std::vector<std::string>& keys) = 0;
  /// What would stay in the store for ever if all clients died now.
  virtual std::vector<std::string> staying() { return {}; }
  /// How many connections there are, our own apart.
  virtual int other_connections() = 0;
  /// How many replicas the server has.
  virtual int replicas() { return 0; }
  /// How many clients wait in the server's own queues.
  virtual int waiting() { return 0; }
  /// Returns when locks can be had again after servers have come back.
  virtual void settle() {}
  /// Sees every command that reaches one of the servers, past the code under test. Null where the
  /// store shows no such thing.
  virtual std::unique_ptr<RedisMonitor> monitor(std::size_t /*server*/ = 0) { return nullptr; }

  virtual bool exists(const std::string& key);
  /// Whether nothing is in the store, or will be once the server has seen that connections are
  /// gone.
  bool becomes_empty();
};

/// Of a server of the suite's kind on this port of 127.0.0.1, as its option takes it.
std::string url_of(std::uint16_t port);

struct Property;

/// A kind of store that the program can test.
struct TestedStore {
  /// Of its folder. `--store=` takes it.
  std::string_view name;
  /// Those whose strategies are tested; with "-quorum" behind it: those that live on several of its
  /// servers; with "-replicated": those that need replicas.
  std::vector<std::string_view> backends;
  /// Started on first use, ended with the program. Leave its server running.
  TestStore& (*shared)();
  /// For checks that kill or freeze its server.
  std::unique_ptr<TestStore> (*make)();
  /// Checks for this store alone, such as those of its sessions. May be null.
  std::vector<Property> (*properties)() = nullptr;
};

/// For `shared` and `make`, where a store of the same kind can be made at any time.
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

/// The one that `--store=` names. Throws std::runtime_error if none is named.
const TestedStore& tested_store();

inline std::vector<std::string_view> tested_backends() { return tested_store().backends; }
inline TestStore& shared_store() { return tested_store().shared(); }
inline std::unique_ptr<TestStore> own_store() { return tested_store().make(); }

}  // namespace lockbench::test
