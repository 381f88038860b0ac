#pragma once

#include <memory>
#include <string>

#include "testbed/servers/kinds.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
#include "tests/conformance/zookeeper/probe.h"

namespace lockbench::test {

class ZookeeperTestStore : public TestStore {
 public:
  ZookeeperTestStore();

  testbed::Server& server() override { return *server_; }
  void clear() override { probe_->remove_tree("/lockbench"); }
  std::vector<std::string> keys() override;
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;

  /// The server may have been killed meanwhile, but it is the same again.
  ZookeeperProbe& probe() { return *probe_; }

 private:
  std::unique_ptr<testbed::Server> server_;
  std::unique_ptr<ZookeeperProbe> probe_;
};

ZookeeperTestStore& shared_zookeeper();
std::vector<Property> zookeeper_properties();
/// Of a key without further colons.
std::string node_of(const std::string& key);

}  // namespace lockbench::test
