#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
#include "tests/support/servers.h"

namespace lockbench::test {

inline constexpr std::size_t kNodes = 5;
inline constexpr std::size_t kMajority = 3;

/// Five independent Redis servers. For one thread.
class QuorumStore : public TestStore {
 public:
  QuorumStore();

  testbed::Server& server() override { return node(0); }
  std::vector<testbed::Server*> servers() override;
  void clear() override;
  /// Of all nodes that answer, once they have dealt with what was sent before.
  std::vector<std::string> keys() override;
  /// When it will be free on a majority.
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  std::unique_ptr<RedisMonitor> monitor(std::size_t server) override;

  testbed::Server& node(std::size_t number) { return *nodes_.at(number); }
  /// Made anew where the node was restarted meanwhile: it must be up.
  RedisProbe& probe(std::size_t number);
  /// Every node runs, and has nothing.
  void repair();

 private:
  std::vector<std::unique_ptr<testbed::Server>> nodes_;
  std::vector<std::unique_ptr<RedisProbe>> probes_;
};

/// For checks that kill and freeze nodes, one after the other: repaired for each.
QuorumStore& breakable_store();

/// What only a lock on several independent servers promises: of nodes that are dead, frozen or
/// slow.
std::vector<Property> outage_properties();

}  // namespace lockbench::test
