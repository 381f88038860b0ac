// Servers that answer with anything but what a request calls for, at each point of every lock on
// ZooKeeper.

#include <gtest/gtest.h>

#include "tests/hostile/zookeeper/zookeeper_speaker.h"
#include "tests/support/hostile_life.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// One server, and what it would have if it were honest.
struct Hostile {
  explicit Hostile(HostileServer::Plan plan)
      : server([nodes = nodes] { return std::make_unique<ZookeeperSpeaker>(nodes); },
               std::move(plan)) {}

  /// Whether the latest answers by which a lock is granted are right.
  bool was_granted(const Descriptor& strategy) {
    const bool made = was_right(ZookeeperSpeaker::kCreate2);
    if (strategy.traits.fair) return made && was_right(ZookeeperSpeaker::kGetChildren);
    // The node may have been made by a request whose answer was lost.
    return made || was_right(ZookeeperSpeaker::kGetData);
  }

  std::shared_ptr<ZookeeperNodes> nodes = std::make_shared<ZookeeperNodes>();
  HostileServer server;

 private:
  bool was_right(std::int32_t operation) {
    const auto exchanges = server.exchanges();
    for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
      if (operation_of(exchange->request) != operation) continue;
      // Behind the frame, the number and the transaction.
      constexpr std::size_t kError = 16, kErrorSize = 4;
      const bool done =
          exchange->sent.substr(0, kError + kErrorSize).ends_with(std::string(kErrorSize, '\0'));
      const std::scoped_lock lock(nodes->mutex);
      return done && exchange->sent == nodes->answered[exchange->request];
    }
    return false;
  }
};

class HostileZookeeper : public testing::TestWithParam<const Descriptor*> {
 protected:
  static int requests() {
    Hostile honest({});
    const int made = requests_at(honest.server, *GetParam(), honest.server.address());
    EXPECT_TRUE(honest.was_granted(*GetParam()));
    return made;
  }
};

TEST_P(HostileZookeeper, GetsNoLockGrantedThatItDidNotGrant) {
  const std::vector<std::string> packets = zookeeper_packets();
  std::vector<Misdeed> all = misdeeds(packets, packets.front());
  all.push_back({Misdeed::Kind::flood, "x"});
  all.push_back({Misdeed::Kind::flood, std::string(4, '\0')});
  const auto play = [](const HostileServer::Plan& plan) {
    Hostile hostile(plan);
    live(*GetParam(), hostile.server.address(),
         [&] { EXPECT_TRUE(hostile.was_granted(*GetParam())); });
  };
  play_all(all, requests(), play, 2);
}

INSTANTIATE_TEST_SUITE_P(All, HostileZookeeper, testing::ValuesIn(strategies_of("zookeeper")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

}  // namespace
}  // namespace lockbench::test
