#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "testbed/servers/etcd_server.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

using testing::HasSubstr;

class Etcd : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();

  std::unique_ptr<Server> must_start_etcd(const EtcdOptions& options = {}) {
    auto server = start_etcd(*testbed_, options);
    EXPECT_TRUE(server) << server.error();
    return server ? *std::move(server) : nullptr;
  }
};

TEST_F(Etcd, AnswersOnAPortOfItsOwnWithDataOfItsOwn) {
  const auto one = must_start_etcd();
  const auto two = must_start_etcd();
  ASSERT_NE(one->port(), two->port());
  EXPECT_EQ(one->url(), "http://root:" + testbed_->secret() + "@" + one->address());
  put_into_etcd(*one);
  EXPECT_THAT(get_from_etcd(*one), HasSubstr("dg=="));
  EXPECT_THAT(get_from_etcd(*two), Not(HasSubstr("dg==")));
}

TEST_F(Etcd, AClusterOutlivesAnyOneOfItsMembers) {
  const auto cluster = start_etcd_cluster(*testbed_);
  ASSERT_TRUE(cluster) << cluster.error();
  ASSERT_EQ(cluster->size(), 3U);
  const std::string url = joint_url(*cluster);
  EXPECT_EQ(std::count(url.begin(), url.end(), ','), 2) << url;
  put_into_etcd(*cluster->at(0));
  EXPECT_THAT(get_from_etcd(*cluster->at(2)), HasSubstr("dg=="));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(cluster->at(i)->kill_hard());
    const Server& neighbour = *cluster->at((i + 1) % 3);
    EXPECT_TRUE(
        eventually([&] { return put_into_etcd(neighbour).find(" 200 ") != std::string::npos; }));
    ASSERT_TRUE(cluster->at(i)->restart(true));
  }
}

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
