#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
#include "tests/conformance/etcd/probe.h"

namespace lockbench::test {

class EtcdTestStore : public TestStore {
 public:
  EtcdTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override { probe_.remove_all(); }
  /// Of a lock's keys their common beginning, which is the lock's own.
  std::vector<std::string> keys() override;
  std::vector<std::string> staying() override;
  /// An end is put off for as long as its client lives.
  std::optional<TimePoint> end_of(const std::string&) override { return std::nullopt; }
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  /// All in a queue but the first.
  int waiting() override;

  EtcdProbe& probe() { return probe_; }

 private:
  std::unique_ptr<testbed::Server> server_;
  EtcdProbe probe_;
};

EtcdTestStore& shared_etcd();
std::vector<Property> etcd_properties();

}  // namespace lockbench::test
