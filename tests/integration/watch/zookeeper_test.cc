#include <fmt/format.h>
#include <gmock/gmock.h>

#include "deployment/failure.h"
#include "strategies/zookeeper/client/session.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/servers.h"

namespace lockbench::watch {
namespace {

using testing::HasSubstr;
using ZkRequest = zookeeper::Request;

std::unique_ptr<testbed::Server> own_zookeeper() {
  return deployment::need(testbed::start_zookeeper(test::shared_testbed()));
}

/// One client of an application, whose session ends with it.
class ZookeeperClient {
 public:
  explicit ZookeeperClient(const std::string& url)
      : session_(*zookeeper::parse_endpoint(url), test::kPatience, *env_, nullptr) {
    if (auto connected = session_.connect(test::kPatience); !connected) {
      throw std::runtime_error(connected.error().message);
    }
  }
  ZookeeperClient(const ZookeeperClient&) = delete;
  ZookeeperClient& operator=(const ZookeeperClient&) = delete;
  ~ZookeeperClient() { session_.close(); }

  void make(const std::string& path) { call(ZkRequest::Kind::make, path); }
  /// Creates a node and returns its path.
  std::string queue(const std::string& lock, const std::string& name) {
    return call(ZkRequest::Kind::make_sequential, lock + "/" + name);
  }
  void remove(const std::string& path) { call(ZkRequest::Kind::remove, path); }
  std::string owner() const {
    return fmt::format("{:x}", static_cast<std::uint64_t>(session_.id()));
  }

 private:
  std::string call(ZkRequest::Kind kind, const std::string& path) {
    const ZkRequest request{kind, path};
    const auto replies = session_.call({&request, 1}, "");
    if (!replies) throw std::runtime_error(replies.error().message);
    return replies->front().path;
  }

  std::unique_ptr<Env> env_ = make_system_env(1);
  zookeeper::Session session_;
};

class WatchedZookeeper : public testing::Test {
 protected:
  static testbed::Server& server() {
    static const std::unique_ptr<testbed::Server> shared = own_zookeeper();
    return *shared;
  }

  ZookeeperClient first_{server().url()}, second_{server().url()};
  Sightings seen_;
};

TEST_F(WatchedZookeeper, AQueueIsSeenInItsOrder) {
  const Running watch("zookeeper", server().url(), {.locks = {"/queue/*"}}, seen_);
  // Neither the root nor the lock is there yet.
  first_.make("/queue");
  first_.make("/queue/a");
  const std::string held = first_.queue("/queue/a", "lock-");
  ASSERT_TRUE(seen_.await_held("/queue/a", first_.owner()));
  const std::string waiting = second_.queue("/queue/a", "lock-");
  const auto queued = seen_.await("/queue/a", [](const Sighting& one) { return one.waiters == 1; });
  ASSERT_TRUE(queued);
  EXPECT_EQ(queued->shape, Shape::sequence_nodes);
  EXPECT_EQ(queued->waiting->front().owner, second_.owner());
  first_.remove(held);
  const auto handed_on = seen_.await_held("/queue/a", second_.owner());
  ASSERT_TRUE(handed_on);
  EXPECT_EQ(handed_on->waiters, 0U);
  EXPECT_GE(handed_on->changes, 1U);
  second_.remove(waiting);
  EXPECT_TRUE(seen_.await_free("/queue/a", handed_on->at));
}

TEST_F(WatchedZookeeper, WhoseSessionEndsHoldsNothingAnyMore) {
  first_.make("/ends");
  first_.make("/ends/a");
  auto holder = std::make_unique<ZookeeperClient>(server().url());
  holder->queue("/ends/a", "lock-");
  const Running watch("zookeeper", server().url(), {.locks = {"ends/*"}}, seen_);
  const auto held = seen_.await_held("/ends/a", holder->owner());
  ASSERT_TRUE(held);
  EXPECT_EQ(held->changes, 0U);
  EXPECT_TRUE(held->holders.front().since);
  holder.reset();
  EXPECT_TRUE(seen_.await_free("/ends/a", held->at));
}

TEST_F(WatchedZookeeper, WithoutAPatternLocksAreProposed) {
  first_.make("/app");
  first_.make("/app/7");
  first_.make("/config");
  first_.queue("/app/7", "lock-");
  const Running watch("zookeeper", server().url(), {}, seen_);
  EXPECT_TRUE(seen_.comes([&] { return seen_.proposed_.contains("/app/*"); }));
  EXPECT_FALSE(seen_.was_proposed("/config"));
}

TEST_F(WatchedZookeeper, NodesThatMayNotBeReadAreNamed) {
  const std::string url = fmt::format("zk://nobody:wrong@127.0.0.1:{}", server().port());
  const auto source = make_source("zookeeper", url, {.locks = {"/*"}});
  ASSERT_TRUE(source);
  const auto reached = (*source)->reach({});
  ASSERT_FALSE(reached);
  EXPECT_THAT(reached.error(), HasSubstr("no permission"));
}

TEST(WatchOfZookeeper, IsBlindDuringARestartAndSeesAfterwards) {
  const auto server = own_zookeeper();
  ZookeeperClient client(server->url());
  client.make("/locks");
  client.make("/locks/a");
  client.queue("/locks/a", "lock-");
  Sightings seen;
  Running watch("zookeeper", server->url(), {.locks = {"/locks/*"}}, seen);
  ASSERT_TRUE(seen.await_held("/locks/a", client.owner()));
  const TimePoint restarted_at = killed_and_back(*server, seen, true);
  EXPECT_TRUE(seen.await_any("/locks/a", restarted_at));
  watch.stop();
}

}  // namespace
}  // namespace lockbench::watch
