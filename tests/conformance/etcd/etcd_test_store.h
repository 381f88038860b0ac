#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strategies/etcd/client/connection.h"
#include "strategies/etcd/client/rpc.pb.h"
#include "testbed/servers/kinds.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"

namespace lockbench::test {

/// Looks into an etcd of the shared testbed, independently of the code under test. For one thread.
/// Throws std::runtime_error if a call fails; waits for a server that is starting.
class EtcdProbe {
 public:
  explicit EtcdProbe(std::uint16_t port);
  EtcdProbe(const EtcdProbe&) = delete;
  EtcdProbe& operator=(const EtcdProbe&) = delete;
  ~EtcdProbe();

  /// The keys below `prefix` (empty: all), the oldest first.
  std::vector<etcdserverpb::KeyValue> keys(const std::string& prefix = {});
  /// Grows with every change of a key.
  std::int64_t revision();
  void put(const std::string& key, etcd::LeaseId lease = 0);
  void remove_all(const std::string& prefix = {});
  etcd::LeaseId grant(std::int64_t seconds);
  void revoke(etcd::LeaseId lease);
  /// Whether the lease has time left.
  bool is_alive(etcd::LeaseId lease);

 private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

class EtcdTestStore : public TestStore {
 public:
  EtcdTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override { probe_.remove_all(); }
  /// The common prefix of a lock's keys, which is the lock's key.
  std::vector<std::string> keys() override;
  std::vector<std::string> staying() override;
  /// A session's is postponed for as long as the client lives.
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  /// All contenders in queues except the first of each.
  int waiting() override;

  EtcdProbe& probe() { return probe_; }

 private:
  std::unique_ptr<testbed::Server> server_;
  EtcdProbe probe_;
};

EtcdTestStore& shared_etcd();
std::vector<Property> etcd_properties();

}  // namespace lockbench::test
