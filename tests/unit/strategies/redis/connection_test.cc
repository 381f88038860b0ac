#include "strategies/redis/client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/scripts.h"
#include "tests/support/fake_redis.h"
#include "tests/support/listener.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ScriptCall, FailuresOtherThanAnUnknownScriptAreFinal) {
  SimClock clock;
  SimEnv env(clock);
  FakeRedis redis(clock);
  const auto connection = redis.make({.host = "fake"}, 1s, env);
  for (const auto failure : {FakeRedis::Failure::rejected, FakeRedis::Failure::answer_lost,
                             FakeRedis::Failure::not_sent}) {
    redis.fail(1, failure);
    EXPECT_FALSE(connection->call(scripts::release_if_token, {"k"}, {"token"}));
    EXPECT_LE(redis.take_commands().size(), 1U);
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
                          kPatience, env_);
  }

  SimClock clock_;
  test::Listener server_;
  CuttingEnv env_{clock_, 1};
  std::unique_ptr<ConnectionFactory> factory_ = make_connection_factory();
};

TEST_F(SocketConnection, TheRestOfACutPipelineIsNotSentOnANewConnection) {
  for (int cut = 1; cut <= 3; ++cut) {
    CuttingEnv env(clock_, cut);
    const auto connection =
        factory_->make({.host = "127.0.0.1", .port = server_.port()}, kPatience, env);
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

/// Accepts one connection after the other. To whatever comes first it says the first of the lines,
/// to what comes next the second.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> lines)
      : lines_(std::move(lines)), thread_([this] { run(); }) {}
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() { stop(); }

  /// What it was told.
  std::vector<std::string> stop() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return told_;
  }
  int port() const { return listener_.port(); }

 private:
  void run() {
    for (int fd = accept(); fd >= 0; fd = accept()) {
      std::array<char, 4096> buffer;
      ssize_t got = 0;
      while (told_.size() < lines_.size() &&
             (got = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0) {
        const std::string& line = lines_[told_.size()];
        told_.emplace_back(buffer.data(), static_cast<std::size_t>(got));
        ::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
      }
      // Until the client leaves.
      while (::recv(fd, buffer.data(), buffer.size(), 0) > 0) continue;
      ::close(fd);
    }
  }
  int accept() const { return ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC); }

  const test::Listener listener_;
  const std::vector<std::string> lines_;
  std::vector<std::string> told_;
  std::thread thread_;
};

class Scripted : public testing::Test {
 protected:
  std::unique_ptr<Connection> connect(const ScriptedServer& server,
                                      const std::string& password = {}) {
    return make_connection_factory()->make(
        {.host = "127.0.0.1", .port = server.port(), .password = password}, kPatience, env_);
  }
  /// Of a master called lock, watched by these.
  static Endpoint watched_by(std::initializer_list<const ScriptedServer*> sentinels) {
    Endpoint endpoint{.user = "ann", .password = "hunter2", .database = 4};
    for (const ScriptedServer* sentinel : sentinels) {
      endpoint.sentinels.push_back({"127.0.0.1", static_cast<std::uint16_t>(sentinel->port())});
    }
    endpoint.master = "lock";
    return endpoint;
  }
  /// What comes of asking it for its master.
  static std::string ask(const ScriptedServer& sentinel) {
    const auto transport = connect_server(watched_by({&sentinel}), kPatience, {});
    return transport ? "connected" : transport.error();
  }
  static std::string array(const std::vector<std::string>& words) {
    std::string all = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      all += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return all;
  }

  SimClock clock_;
  SimEnv env_{clock_};
};

TEST_F(Scripted, HalfAnAnswerIsNoInput) {
  ScriptedServer server({"$5\r\nhel", "lo\r\n+OK\r\n"});
  const auto connection = connect(server);
  connection->queue({"GET", "k"});
  connection->flush();
  EXPECT_FALSE(connection->receive_within(50ms));
  EXPECT_GE(connection->descriptor(), 0) << "who polls would spin";
  connection->queue({"PING"});
  connection->flush();
  const auto reply = connection->receive();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->text, "hello");
  EXPECT_EQ(connection->descriptor(), -1) << "the next one is there";
  EXPECT_TRUE(connection->receive());
}

TEST_F(Scripted, ASurplusAnswerIsNotTakenForTheNext) {
  ScriptedServer server({"+OK\r\n+OK\r\n", ":0\r\n"});
  const auto connection = connect(server);
  const auto doubtful = connection->call({"SET", "a", "1"});
  ASSERT_FALSE(doubtful);
  EXPECT_EQ(doubtful.error().kind, StoreError::Kind::unanswered);
  EXPECT_THAT(doubtful.error().message, HasSubstr("nobody asked for"));
  const auto next = connection->call({"SET", "b", "1"});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->is_integer(0));
}

TEST_F(Scripted, ASentinelGetsThePasswordOnlyIfItAsks) {
  const std::string address = array({"127.0.0.1", "1"});
  ScriptedServer open({address});
  // Nobody listens there; but the sentinel has answered.
  EXPECT_THAT(ask(open), HasSubstr("127.0.0.1:1: "));
  EXPECT_THAT(open.stop(), ElementsAre(HasSubstr("SENTINEL")));

  ScriptedServer locked({"-NOAUTH Authentication required.\r\n", "+OK\r\n", address});
  EXPECT_THAT(ask(locked), HasSubstr("127.0.0.1:1: "));
  EXPECT_THAT(locked.stop(),
              ElementsAre(HasSubstr("SENTINEL"), HasSubstr("hunter2"), HasSubstr("SENTINEL")));

  ScriptedServer refusing({"-NOAUTH Authentication required.\r\n", "-WRONGPASS hunter2\r\n"});
  EXPECT_THAT(ask(refusing), testing::AllOf(HasSubstr("AUTH was refused: WRONGPASS"),
                                            testing::Not(HasSubstr("hunter2"))));
}

TEST_F(Scripted, AnAnswerThatNamesNoMasterIsExplained) {
  const std::string no_address = "its answer is not an address";
  const std::pair<std::string, std::string> cases[] = {
      {"$-1\r\n", "it does not watch lock"},
      {"-ERR no\r\n", "ERR no"},
      {"+OK\r\n", no_address},
      {":3\r\n", no_address},
      {array({"10.0.0.7"}), no_address},
      {array({"10.0.0.7", "x"}), no_address},
      {array({"10.0.0.7", "0"}), no_address},
      {array({"10.0.0.7", "65536"}), no_address},
      {array({"", "6379"}), no_address},
      {array({"10.0.0.7", "6379", "1"}), no_address},
  };
  for (const auto& [answer, reason] : cases) {
    const ScriptedServer sentinel({answer});
    EXPECT_THAT(ask(sentinel), HasSubstr(std::to_string(sentinel.port()) + ": " + reason));
  }
}

TEST_F(Scripted, TheNextSentinelIsAskedAndTheRoleOfItsMasterChecked) {
  const std::string refused = "-NOPERM no permissions to run the 'role' command\r\n";
  for (const auto& [role, is_master] : {std::pair(array({"master", "0"}), true),
                                        {refused, true},
                                        {array({"slave", "10.0.0.7"}), false},
                                        {array({}), false},
                                        {std::string("-LOADING it loads\r\n"), false}}) {
    ScriptedServer master({"+OK\r\n", role, "+OK\r\n"});
    const ScriptedServer other({"$-1\r\n"});
    ScriptedServer sentinel({array({"127.0.0.1", std::to_string(master.port())})});
    const Endpoint endpoint = watched_by({&other, &sentinel});
    const auto connected = make_connection_factory()->make(endpoint, kPatience, env_)->connect();
    EXPECT_EQ(connected.has_value(), is_master) << role;
    if (!connected) {
      EXPECT_THAT(connected.error().message, HasSubstr(endpoint.display()));
    }
    EXPECT_THAT(sentinel.stop(), ElementsAre(HasSubstr("get-master-addr-by-name")));
    const auto told = master.stop();
    ASSERT_EQ(told.size(), is_master ? 3U : 2U) << role;
    EXPECT_THAT(told[0], HasSubstr("hunter2"));
    EXPECT_THAT(told[1], HasSubstr("ROLE"));
    EXPECT_THAT(told.back(), HasSubstr(is_master ? "SELECT" : "ROLE"));
  }
}

TEST_F(Scripted, NoneOfTheWordsThatAnswerALoginAreRepeated) {
  const auto says_that_it_failed =
      testing::AllOf(HasSubstr("AUTH was "), testing::Not(HasSubstr("hunter2")));
  for (const char* answer : {"+hunter2\r\n", "$7\r\nhunter2\r\n", "-hunter2\r\n",
                             "-hunter2 WRONGPASS\r\n", "-WRONGPASS hunter2\r\n"}) {
    const ScriptedServer server({answer});
    const auto connected = connect(server, "hunter2")->connect();
    ASSERT_FALSE(connected) << answer;
    EXPECT_THAT(connected.error().message, says_that_it_failed) << answer;
    const ScriptedServer sentinel({"-NOAUTH Authentication required.\r\n", answer});
    EXPECT_THAT(ask(sentinel), says_that_it_failed) << answer;
  }
}

TEST_F(Scripted, ManySubscriptionsAreSentInOnePiece) {
  const auto confirmed = [](const std::string& channel) {
    return "*3\r\n$9\r\nsubscribe\r\n$1\r\n" + channel + "\r\n:1\r\n";
  };
  ScriptedServer server({confirmed("a") + confirmed("b"), confirmed("c")});
  auto subscriber = make_connection_factory()->make_subscriber(
      {.host = "127.0.0.1", .port = server.port()}, kPatience, env_);
  ASSERT_TRUE(subscriber->connect({}));
  const auto next_channel = [&] {
    const auto push = subscriber->receive(kPatience, {});
    return push && *push ? (*push)->channel : "none";
  };
  ASSERT_TRUE(subscriber->subscribe_to_all(std::array<std::string, 2>{"a", "b"}));
  EXPECT_EQ(next_channel(), "a");
  EXPECT_EQ(next_channel(), "b");
  ASSERT_TRUE(subscriber->subscribe("c"));
  EXPECT_EQ(next_channel(), "c");
  subscriber.reset();
  EXPECT_EQ(server.stop().size(), 2U);
}

}  // namespace
}  // namespace lockbench::redis
