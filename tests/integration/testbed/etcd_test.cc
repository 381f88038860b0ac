#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "testbed/servers/etcd_server.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

using testing::HasSubstr;

/// etcd's gateway from HTTP to its API.
std::string post(std::uint16_t port, const std::string& path, const std::string& body,
                 const std::string& token = {}) {
  const std::string request = "POST " + path + " HTTP/1.0\r\n" +
                              (token.empty() ? "" : "Authorization: " + token + "\r\n") +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  const auto answer =
      ask_until(port, request, std::chrono::seconds(5), [](std::string_view) { return false; });
  return answer ? *answer : answer.error();
}

/// As root, with a token for one question.
std::string post(const Server& server, const std::string& path, const std::string& body) {
  std::string answer = post(server.port(), "/v3/auth/authenticate",
                            R"({"name":"root","password":")" + server.secret() + R"("})");
  constexpr std::string_view kLabel = R"("token":")";
  const std::size_t at = answer.find(kLabel);
  if (at == std::string::npos) return answer;
  const std::size_t from = at + kLabel.size();
  return post(server.port(), path, body, answer.substr(from, answer.find('"', from) - from));
}

// "k" and "v", in base 64.
std::string put(const Server& server) {
  return post(server, "/v3/kv/put", R"({"key":"aw==","value":"dg=="})");
}
std::string get(const Server& server) { return post(server, "/v3/kv/range", R"({"key":"aw=="})"); }

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
  put(*one);
  EXPECT_THAT(get(*one), HasSubstr("dg=="));
  EXPECT_THAT(get(*two), Not(HasSubstr("dg==")));
}

TEST_F(Etcd, KeepsItsDataThroughAKillUnlessToldOtherwise) {
  const auto server = must_start_etcd();
  put(*server);
  const pid_t pid = server->pid();
  ASSERT_TRUE(server->kill_hard());
  EXPECT_TRUE(pid_is_gone(pid));
  ASSERT_TRUE(server->restart(true));
  EXPECT_THAT(get(*server), HasSubstr("dg=="));
  ASSERT_TRUE(server->restart(false));
  EXPECT_THAT(get(*server), Not(HasSubstr("dg==")));
}

TEST_F(Etcd, FreezesAndThaws) {
  const auto server = must_start_etcd();
  ASSERT_TRUE(server->freeze());
  EXPECT_FALSE(
      ask_line(server->port(), "GET /health HTTP/1.0\r\n\r\n", std::chrono::milliseconds(200)));
  ASSERT_TRUE(server->thaw());
  EXPECT_TRUE(eventually([&] { return put(*server).find(" 200 ") != std::string::npos; }));
}

TEST_F(Etcd, TriesOtherPortsWhenItLosesTheRace) {
  const auto other = must_start_etcd();
  int calls = 0;
  EtcdOptions options;
  options.choose_port = [&]() -> tl::expected<std::uint16_t, std::string> {
    return calls++ == 0 ? other->port() : free_loopback_port();
  };
  const auto server = must_start_etcd(options);
  ASSERT_TRUE(server);
  EXPECT_NE(server->port(), other->port());
  EXPECT_EQ(calls, 2);
}

TEST_F(Etcd, AClusterOutlivesAnyOneOfItsMembers) {
  const auto cluster = start_etcd_cluster(*testbed_);
  ASSERT_TRUE(cluster) << cluster.error();
  ASSERT_EQ(cluster->size(), 3U);
  const std::string url = joint_url(*cluster);
  EXPECT_EQ(std::count(url.begin(), url.end(), ','), 2) << url;
  put(*cluster->at(0));
  EXPECT_THAT(get(*cluster->at(2)), HasSubstr("dg=="));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(cluster->at(i)->kill_hard());
    const Server& neighbour = *cluster->at((i + 1) % 3);
    EXPECT_TRUE(eventually([&] { return put(neighbour).find(" 200 ") != std::string::npos; }));
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
    EXPECT_TRUE(eventually([&] { return is_done(put(other)); })) << "the others go on";
    EXPECT_FALSE(is_done(put(own)));
    EXPECT_TRUE(ask_line(own.port(), "GET /version HTTP/1.0\r\n\r\n", std::chrono::seconds(2)));
    mesh.heal();
    EXPECT_TRUE(eventually([&] { return is_done(put(own)); }));
  }
}

TEST_F(Etcd, TellsWhatIsMissing) {
  const auto found = find_program(kEtcd, "/nowhere");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), "etcd not found: install the package etcd-server");
}

}  // namespace
}  // namespace lockbench::testbed
