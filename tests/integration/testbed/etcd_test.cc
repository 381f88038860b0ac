#include <gtest/gtest.h>

#include <algorithm>

#include "testbed/servers/etcd_server.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

class Etcd : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();
};

TEST_F(Etcd, OneMemberLeadsAndAnotherAfterItsDeath) {
  const auto cluster = start_etcd_cluster(*testbed_);
  ASSERT_TRUE(cluster) << cluster.error();
  const auto leaders = [&] {
    std::vector<std::size_t> leading;
    for (std::size_t i = 0; i < cluster->size(); ++i) {
      if (cluster->at(i)->leads()) leading.push_back(i);
    }
    return leading;
  };
  ASSERT_TRUE(eventually([&] { return leaders().size() == 1; }));
  const std::size_t first = leaders().front();
  ASSERT_TRUE(cluster->at(first)->kill_hard());
  EXPECT_TRUE(eventually([&] { return leaders().size() == 1; }));
  EXPECT_FALSE(cluster->at(first)->leads()) << "it does not answer";
}

TEST_F(Etcd, AMemberThatIsCutOffAnswersItsClientsButCannotWrite) {
  const auto proxies = ProxyPool::start();
  ASSERT_TRUE(proxies) << proxies.error();
  Mesh mesh(**proxies);
  const auto cluster = start_etcd_cluster(*testbed_, 3, {.mesh = &mesh});
  ASSERT_TRUE(cluster) << cluster.error();
  const auto is_done = [](const std::string& answer) {
    return answer.find(" 200 ") != std::string::npos;
  };
  const auto found =
      std::find_if(cluster->begin(), cluster->end(), [](const auto& one) { return one->leads(); });
  ASSERT_NE(found, cluster->end());
  const auto leader = static_cast<std::size_t>(found - cluster->begin());
  // The leader last: it must not lead the others any more.
  for (const std::size_t member : {(leader + 1) % 3, leader}) {
    const Server& own = *cluster->at(member);
    const Server& other = *cluster->at((member + 1) % 3);
    mesh.isolate(member);
    EXPECT_TRUE(eventually([&] { return is_done(put_into_etcd(other)); })) << "the others go on";
    EXPECT_FALSE(is_done(put_into_etcd(own)));
    EXPECT_TRUE(ask_line(own.port(), "GET /version HTTP/1.0\r\n\r\n", test::kPatience));
    mesh.heal();
    EXPECT_TRUE(eventually([&] { return is_done(put_into_etcd(own)); }));
  }
}

}  // namespace
}  // namespace lockbench::testbed
