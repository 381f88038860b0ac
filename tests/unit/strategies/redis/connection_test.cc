#include "strategies/redis/client/connection.h"

#include <gtest/gtest.h>

#include "strategies/redis/scripts.h"
#include "tests/support/fake_redis.h"
#include "tests/support/listener.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;

class ScriptCall : public testing::Test {
 protected:
  StoreResult<Reply> release() {
    return connection_->call(scripts::release_if_token, {"k"}, {"token"});
  }

  using Commands = std::vector<std::string>;

  SimClock clock_;
  SimEnv env_{clock_};
  FakeRedis redis_{clock_};
  std::unique_ptr<Connection> connection_ = redis_.make({.host = "fake"}, 1s, env_);
};

TEST_F(ScriptCall, SendsTheSourceOnlyIfTheServerDoesNotKnowTheHash) {
  redis_.set("k", "token");
  const auto first = release();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->is_integer(1));
  EXPECT_EQ(redis_.take_commands(),
            (Commands{"EVALSHA release_if_token 1 k token", "EVAL release_if_token 1 k token"}));
  EXPECT_TRUE(release()->is_integer(0));
  EXPECT_EQ(redis_.take_commands(), (Commands{"EVALSHA release_if_token 1 k token"}));
}

TEST_F(ScriptCall, OtherFailuresAreFinal) {
  for (const auto failure : {FakeRedis::Failure::rejected, FakeRedis::Failure::answer_lost,
                             FakeRedis::Failure::not_sent}) {
    redis_.fail(1, failure);
    EXPECT_FALSE(release());
    EXPECT_LE(redis_.take_commands().size(), 1U);
  }
}

/// Drops the n-th command.
class CuttingEnv : public SimEnv {
 public:
  CuttingEnv(SimClock& clock, int n) : SimEnv(clock), left_(n) {}
  CommandFate before_command(const CommandInfo& command) override {
    SimEnv::before_command(command);
    return --left_ == 0 ? CommandFate::drop : CommandFate::proceed;
  }

 private:
  int left_;
};

class SocketConnection : public testing::Test {
 protected:
  std::unique_ptr<Connection> connect(const std::string& password = {}) {
    return factory_->make({.host = "127.0.0.1", .port = server_.port(), .password = password},
                          timeout_, env_);
  }

  SimClock clock_;
  test::Listener server_;
  CuttingEnv env_{clock_, 1};
  Duration timeout_ = test::kPatience;
  std::unique_ptr<ConnectionFactory> factory_ = make_connection_factory();
};

TEST_F(SocketConnection, TheRestOfACutPipelineIsNotSentOnANewConnection) {
  for (int cut = 1; cut <= 3; ++cut) {
    CuttingEnv env(clock_, cut);
    const auto connection =
        factory_->make({.host = "127.0.0.1", .port = server_.port()}, timeout_, env);
    connection->queue({"MULTI"});
    connection->queue({"SETNX", "k", "1"});
    connection->queue({"EXEC"});
    for (int i = 0; i < 3; ++i) {
      const auto reply = connection->receive();
      ASSERT_FALSE(reply) << "cut at " << cut << ", answer " << i;
      EXPECT_EQ(reply.error().kind, StoreError::Kind::not_sent);
    }
    EXPECT_EQ(env.commands(),
              (std::vector<std::string>{"before MULTI", "before SETNX", "before EXEC", "lost MULTI",
                                        "lost SETNX", "lost EXEC"}));
  }
}

TEST_F(SocketConnection, ReportsTheEndOfACutGreetingToo) {
  const auto connected = connect("hunter2")->connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind, StoreError::Kind::not_sent);
  EXPECT_EQ(connected.error().message.find("hunter2"), std::string::npos);
  EXPECT_EQ(env_.commands(), (std::vector<std::string>{"before AUTH", "lost AUTH"}));
}

TEST_F(SocketConnection, NoAnswerWithinTheTimeoutIsUnanswered) {
  timeout_ = 60ms;
  const auto connection = connect();
  EXPECT_FALSE(connection->call({"PING"}));  // this one is cut
  const auto reply = connection->call({"PING"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, StoreError::Kind::unanswered);
  EXPECT_NE(reply.error().message.find("127.0.0.1:" + std::to_string(server_.port())),
            std::string::npos);
  EXPECT_NE(reply.error().message.find("60ms"), std::string::npos);
}

TEST_F(SocketConnection, AStopGivesUpAnAnswer) {
  const auto connection = connect();
  EXPECT_FALSE(connection->call({"PING"}));  // this one is cut
  std::stop_source stop;
  stop.request_stop();
  const auto reply = connection->call({"PING"}, stop.get_token());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message.find("no answer within"), std::string::npos)
      << reply.error().message;
}

}  // namespace
}  // namespace lockbench::redis
