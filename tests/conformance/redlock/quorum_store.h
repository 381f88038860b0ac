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
  /// Keys of all answering nodes, once they have handled all earlier commands.
  std::vector<std::string> keys() override;
  /// When the lock will be free on a majority.
  std::optional<TimePoint> end_of(const std::string& key) override;
  void take_away(const std::vector<std::string>& keys) override;
  int other_connections() override;
  std::unique_ptr<RedisMonitor> monitor(std::size_t server) override;

  testbed::Server& node(std::size_t number) { return *nodes_.at(number); }
  /// A new one if the node was restarted meanwhile; the node must be up.
  RedisProbe& probe(std::size_t number);
  /// Makes every node run and empties it.
  void repair();

 private:
  std::vector<std::unique_ptr<testbed::Server>> nodes_;
  std::vector<std::unique_ptr<RedisProbe>> probes_;
};

/// A store for checks that kill and freeze nodes; repaired for each check.
QuorumStore& breakable_store();

/// Promises only of locks on several independent servers, about dead, frozen or slow nodes.
std::vector<Property> outage_properties();

}  // namespace lockbench::test
