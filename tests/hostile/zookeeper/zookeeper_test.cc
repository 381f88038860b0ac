// Servers that answer with anything but what a request calls for, at each point of every lock on
// ZooKeeper.

#include <gtest/gtest.h>

#include "tests/hostile/zookeeper/zookeeper_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using Exchanges = std::vector<HostileServer::Exchange>;

/// Whether the latest answer to this operation is the right one.
bool was_right(ZookeeperNodes& nodes, const Exchanges& exchanges, std::int32_t operation) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (operation_of(exchange->request) != operation) continue;
    // Behind the frame, the number and the transaction.
    constexpr std::size_t kError = 16, kErrorSize = 4;
    const bool done =
        exchange->sent.substr(0, kError + kErrorSize).ends_with(std::string(kErrorSize, '\0'));
    const std::scoped_lock lock(nodes.mutex);
    return done && exchange->sent == nodes.answered[exchange->request];
  }
  return false;
}

class HostileZookeeper : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileZookeeper, GetsNoLockGrantedThatItDidNotGrant) {
  const auto make = [] {
    const auto nodes = std::make_shared<ZookeeperNodes>();
    const auto was_granted = [nodes](const Exchanges& exchanges) {
      const bool made = was_right(*nodes, exchanges, ZookeeperSpeaker::kCreate2);
      // Without a queue the node may have been made by a request whose answer was lost.
      return GetParam()->traits.fair
                 ? made && was_right(*nodes, exchanges, ZookeeperSpeaker::kGetChildren)
                 : made || was_right(*nodes, exchanges, ZookeeperSpeaker::kGetData);
    };
    return Honest{[nodes] { return std::make_unique<ZookeeperSpeaker>(nodes); }, was_granted};
  };
  const std::vector<std::string> packets = zookeeper_packets();
  const std::vector<std::string> floods{packets.front(), "x", std::string(4, '\0')};
  expect_no_false_grants(*GetParam(), misdeeds(packets, floods), make, 2);
}

INSTANTIATE_TEST_SUITE_P(All, HostileZookeeper, testing::ValuesIn(strategies_of("zookeeper")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
