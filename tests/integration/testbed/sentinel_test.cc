#include "testbed/servers/sentinel.h"

#include <gtest/gtest.h>

#include "strategies/redis/client/connection.h"
#include "testbed/servers/redis_group.h"
#include "tests/integration/testbed/support.h"

// A lock behind real sentinels: whoever connects is led to the master, before and after one died.

namespace lockbench::testbed {
namespace {

class Watched : public testing::Test {
 protected:
  void SetUp() override {
    auto group = start_redis_group(*testbed_, {.replicas = 1});
    ASSERT_TRUE(group) << group.error();
    group_ = *std::move(group);
    auto sentinels = start_sentinels(*testbed_, group_->primary().port());
    ASSERT_TRUE(sentinels) << sentinels.error();
    sentinels_ = *std::move(sentinels);
  }

  std::unique_ptr<redis::Connection> connect_to(const std::string& url) {
    return factory_->make(redis::parse_endpoint(url).value(), test::kPatience, *env_);
  }

  std::unique_ptr<Testbed> testbed_ = must_start();
  std::unique_ptr<RedisGroup> group_;
  std::unique_ptr<SentinelGroup> sentinels_;
  const std::unique_ptr<Env> env_ = make_system_env(1);
  const std::unique_ptr<redis::ConnectionFactory> factory_ = redis::make_connection_factory();
};

TEST_F(Watched, AConnectionFindsTheMasterAndItsSuccessor) {
  const auto redis = connect_to(sentinels_->url());
  ASSERT_TRUE(redis->call({"SET", "key", "value"}));
  // Replicated before the primary dies, so that the successor can show that it is one.
  ASSERT_TRUE(redis->call({"WAIT", "1", "1000"})->is_integer(1));
  ASSERT_TRUE(group_->primary().kill_hard());
  EXPECT_FALSE(redis->call({"GET", "key"}));
  const auto replaced = sentinels_->await_master(group_->replica(0).port(), test::kPatience);
  ASSERT_TRUE(replaced) << replaced.error();
  const auto value = redis->call({"GET", "key"});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_TRUE(value->is_text("value"));
  EXPECT_EQ(redis->times_connected(), 2U);
}

/// Though nothing breaks the connection to it.
TEST_F(Watched, AMasterThatIsOneNoMoreIsNotKept) {
  const auto redis = connect_to(sentinels_->url());
  ASSERT_TRUE(redis->call({"SET", "key", "value"}));
  const auto primary = factory_->make(redis::parse_endpoint(group_->primary().url()).value(),
                                      test::kPatience, *env_);
  ASSERT_TRUE(primary->call({"REPLICAOF", "127.0.0.1", "1"}));
  const auto refused = redis->call({"SET", "key", "other"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, StoreError::Kind::rejected) << refused.error().message;
  const auto asked_again = redis->call({"SET", "key", "other"});
  ASSERT_FALSE(asked_again);
  EXPECT_EQ(asked_again.error().kind, StoreError::Kind::not_sent) << asked_again.error().message;
  ASSERT_TRUE(primary->call({"REPLICAOF", "NO", "ONE"}));
  EXPECT_TRUE(redis->call({"SET", "key", "other"}));
}

}  // namespace
}  // namespace lockbench::testbed
