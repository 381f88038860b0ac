#include <gmock/gmock.h>

#include <algorithm>

#include "testbed/servers/kinds.h"
#include "testbed/servers/ports.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

class Cluster : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();
};

TEST_F(Cluster, AnEnsembleHasOneLeaderAndGetsAnother) {
  const auto servers = must(start_zookeeper_ensemble(*testbed_));
  const auto modes = [&] {
    std::multiset<std::string> all;
    for (const auto& server : servers) all.insert(zookeeper_mode(*server));
    return all;
  };
  EXPECT_THAT(modes(), testing::ElementsAre("follower", "follower", "leader"));
  const auto leader = std::find_if(servers.begin(), servers.end(), [](const auto& server) {
    return zookeeper_mode(*server) == "leader";
  });
  ASSERT_NE(leader, servers.end());
  ASSERT_TRUE((*leader)->kill_hard());
  EXPECT_TRUE(eventually([&] { return modes().contains("leader"); }));
  ASSERT_TRUE((*leader)->restart(false)) << "a member knows its number without its data";
  EXPECT_THAT(modes(), testing::ElementsAre("follower", "follower", "leader"));
}

TEST_F(Cluster, AnEnsemblesMemberThatIsCutOffServesNoLongerAndTheOthersGoOn) {
  const auto proxies = must(ProxyPool::start());
  Mesh mesh(*proxies);
  const auto servers = must(start_zookeeper_ensemble(*testbed_, 3, {.mesh = &mesh}));
  for (const char* mode : {"follower", "leader"}) {
    const auto found = std::find_if(servers.begin(), servers.end(), [&](const auto& server) {
      return zookeeper_mode(*server) == mode;
    });
    ASSERT_NE(found, servers.end());
    const auto cut_off = static_cast<std::size_t>(found - servers.begin());
    mesh.isolate(cut_off);
    const auto leads = [](const auto& server) { return zookeeper_mode(*server) == "leader"; };
    EXPECT_TRUE(eventually([&] {
      return zookeeper_mode(*servers.at(cut_off)).empty() &&
             std::any_of(servers.begin(), servers.end(), leads);
    })) << "it has no quorum, though its port answers";
    mesh.heal();
    EXPECT_TRUE(eventually([&] { return !zookeeper_mode(*servers.at(cut_off)).empty(); }));
  }
}

TEST_F(Cluster, AMemberOfEtcdThatIsCutOffAnswersItsClientsButCannotWrite) {
  const auto proxies = must(ProxyPool::start());
  Mesh mesh(*proxies);
  const auto cluster = must(start_etcd_cluster(*testbed_, 3, {.mesh = &mesh}));
  const auto is_done = [](const std::string& answer) {
    return answer.find(" 200 ") != std::string::npos;
  };
  const auto found =
      std::find_if(cluster.begin(), cluster.end(), [](const auto& one) { return one->leads(); });
  ASSERT_NE(found, cluster.end());
  const auto leader = static_cast<std::size_t>(found - cluster.begin());
  // The leader last: it must not lead the others any more.
  for (const std::size_t member : {(leader + 1) % 3, leader}) {
    const Server& own = *cluster.at(member);
    const Server& other = *cluster.at((member + 1) % 3);
    mesh.isolate(member);
    EXPECT_TRUE(eventually([&] { return is_done(put_into_etcd(other)); })) << "the others go on";
    EXPECT_FALSE(is_done(put_into_etcd(own)));
    EXPECT_TRUE(ask_line(own.port(), "GET /version HTTP/1.0\r\n\r\n", test::kPatience));
    mesh.heal();
    EXPECT_TRUE(eventually([&] { return is_done(put_into_etcd(own)); }));
  }
}

struct NoServer {};
using NoServers = std::unique_ptr<NoServer>;

/// In the first `lost` attempts one of three loses its port, and the others find no majority.
auto start_without_ports(int lost, int& attempts) {
  return start_all_on_free_ports<NoServer, int>(
      [&] {
        ++attempts;
        return std::vector<int>{0, 1, 2};
      },
      [&](std::size_t number, const std::vector<int>& /*all*/) -> NoServers {
        if (attempts > lost) return std::make_unique<NoServer>();
        if (number == 1) throw Failure("bind: " + std::string(kPortTaken));
        throw Failure("was not ready within 1 ms");
      });
}

TEST(PortsOfACluster, AreDrawnAgainWhoeverLostHis) {
  int attempts = 0;
  const auto started = start_without_ports(1, attempts);
  ASSERT_TRUE(started) << started.error();
  EXPECT_EQ(started->size(), 3U);
  EXPECT_EQ(attempts, 2);
}

TEST(PortsOfACluster, AreNotDrawnForEver) {
  int attempts = 0;
  const auto started = start_without_ports(100, attempts);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), "bind: Address already in use");
  EXPECT_EQ(attempts, 5);
}

TEST(PortsOfACluster, AreNotDrawnAgainWhereSomethingElseIsWrong) {
  int attempts = 0;
  const auto started = start_all_on_free_ports<NoServer, int>(
      [&] {
        ++attempts;
        return std::vector<int>{0, 1};
      },
      [](std::size_t number, const std::vector<int>& /*all*/) -> NoServers {
        if (number == 0) return std::make_unique<NoServer>();
        throw Failure("no folder");
      });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), "no folder");
  EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace lockbench::testbed
