#include "strategies/redis/client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/single_node.h"
#include "tests/support/listener.h"
#include "tests/support/scripted_dialer.h"
#include "tests/support/sim_env.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Connection> connect_to(int port, Env& env, const std::string& password = {}) {
  return make_connection_factory()->make({.host = "127.0.0.1", .port = port, .password = password},
                                         kPatience, env);
}

/// Accepts one connection after the other. Answers the first request with the first line, the next
/// with the second.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> lines)
      : lines_(std::move(lines)), thread_([this] { run(); }) {}
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() { stop(); }

  /// The requests that it got.
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
      // Until the client disconnects.
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
  /// The endpoint of a master named "lock", watched by these sentinels.
  static Endpoint watched_by(std::initializer_list<const ScriptedServer*> sentinels) {
    Endpoint endpoint{.user = "ann", .password = "hunter2", .database = 4};
    for (const ScriptedServer* sentinel : sentinels) {
      endpoint.sentinels.push_back({"127.0.0.1", static_cast<std::uint16_t>(sentinel->port())});
    }
    endpoint.master = "lock";
    return endpoint;
  }
  /// The result of asking this sentinel for its master.
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
  const auto connection = connect_to(server.port(), env_);
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
  const auto connection = connect_to(server.port(), env_);
  const auto doubtful = connection->call({"SET", "a", "1"});
  ASSERT_FALSE(doubtful);
  EXPECT_EQ(doubtful.error().kind, StoreError::Kind::unanswered);
  EXPECT_THAT(doubtful.error().message, HasSubstr("nobody asked for"));
  const auto next = connection->call({"SET", "b", "1"});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->is_integer(0));
}

/// Connections to a server that may close them.
class Closing : public Scripted {
 protected:
  std::unique_ptr<Connection> connection_to(test::ScriptedDialer& server) {
    return make_connection_factory_on(server)->make({.host = "fake"}, kPatience, env_);
  }
};

TEST_F(Closing, TheEndOfAnIdleConnectionCostsNoCommand) {
  for (const bool closes : {true, false}) {
    test::ScriptedDialer server({"+OK\r\n", "+OK\r\n"});
    const auto connection = connection_to(server);
    ASSERT_TRUE(connection->call({"SET", "a", "1"}));
    if (closes) {
      server.close();
    } else {
      server.send("-ERR idle\r\n");
    }
    clock_.advance(2s);
    const auto next = connection->call({"SET", "b", "1"});
    EXPECT_TRUE(next) << next.error().message;
    EXPECT_EQ(connection->times_connected(), 2U);
  }
}

/// A quorum's round must not wait for a new connection to one node.
TEST_F(Closing, TheEndOfAnIdleConnectionShowsBeforeItIsAskedWhetherThereIsOne) {
  test::ScriptedDialer server({"+OK\r\n"});
  const auto connection = connection_to(server);
  ASSERT_TRUE(connection->call({"SET", "a", "1"}));
  server.close();
  clock_.advance(2s);
  EXPECT_TRUE(connection->connect_within(0s).value_or(false));
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(Closing, ABusyConnectionIsNotLookedAt) {
  test::ScriptedDialer server({"+OK\r\n", "+OK\r\n"});
  const auto connection = connection_to(server);
  ASSERT_TRUE(connection->call({"SET", "a", "1"}));
  clock_.advance(1s);
  ASSERT_TRUE(connection->call({"SET", "b", "1"}));
  EXPECT_EQ(server.looks(), 0);
}

TEST_F(Scripted, ASentinelGetsThePasswordOnlyIfItAsks) {
  const std::string address = array({"127.0.0.1", "1"});
  ScriptedServer open({address});
  // Nothing listens there, but the sentinel has answered.
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
    const auto connected = connect_to(server.port(), env_, "hunter2")->connect();
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

/// The first reply in these bytes, fed in pieces of this size.
tl::expected<std::optional<Reply>, std::string> read(std::string_view bytes,
                                                     std::size_t piece = 4096) {
  ReplyReader reader;
  auto reply = reader.next();
  while (reply && !*reply && !bytes.empty()) {
    const std::string_view first = bytes.substr(0, piece);
    reader.feed(first);
    bytes.remove_prefix(first.size());
    reply = reader.next();
  }
  return reply;
}

TEST(ReplyReader, ReadsEveryTypeInPiecesOfAnySize) {
  const std::string bytes =
      "*6\r\n+OK\r\n-ERR no\r\n:-12\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n*-1\r\n*0\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const auto reply = read(bytes, piece);
    ASSERT_TRUE(reply && *reply) << piece;
    const std::vector<Reply>& parts = (*reply)->elements;
    ASSERT_EQ(parts.size(), 6U);
    EXPECT_TRUE(parts[0].is_text("OK"));
    EXPECT_EQ(parts[1].type, Reply::Type::error);
    EXPECT_EQ(parts[1].text, "ERR no");
    EXPECT_TRUE(parts[2].is_integer(-12));
    EXPECT_TRUE(parts[3].is_text("a\r\nb"));
    EXPECT_TRUE(parts[4].is_nil());
    ASSERT_EQ(parts[5].elements.size(), 2U);
    EXPECT_TRUE(parts[5].elements[0].is_nil());
    EXPECT_EQ(parts[5].elements[1].type, Reply::Type::array);
  }
}

TEST(Forms, TakeNothingElse) {
  const auto is = [](const auto& form, std::string_view bytes) {
    return form.read(**read(bytes)).has_value();
  };
  EXPECT_TRUE(is(kOkOrNil, "+OK\r\n") && is(kOkOrNil, "$-1\r\n"));
  EXPECT_FALSE(is(kOkOrNil, ":1\r\n") || is(kOkOrNil, "+QUEUED\r\n") || is(kOkOrNil, "*0\r\n"));
  EXPECT_TRUE(is(kFlag, ":0\r\n") && is(kFlag, ":1\r\n"));
  EXPECT_FALSE(is(kFlag, ":2\r\n") || is(kFlag, ":-1\r\n") || is(kFlag, "$1\r\n1\r\n"));
  EXPECT_FALSE(is(kCount, ":-1\r\n") || is(kCount, ":2147483648\r\n"));
  EXPECT_FALSE(is(kText, "$-1\r\n") || is(kTextOrNil, ":1\r\n"));
  // A century is accepted; a TTL of 292 years would overflow.
  EXPECT_TRUE(is(kNilOrTimeLeft, ":3155760000000\r\n"));
  EXPECT_FALSE(is(kNilOrTimeLeft, ":9223372036854775807\r\n"));
  EXPECT_FALSE(is(kNilOrTimeLeft, ":-2\r\n"));
}

TEST(Pushes, AreMessagesOrErrors) {
  const auto push = read_push(**read("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"));
  ASSERT_TRUE(push);
  EXPECT_EQ(push->kind, Push::Kind::message);
  EXPECT_EQ(push->channel, "c");
  for (const std::string_view bytes :
       {":1\r\n", "*0\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n", "*3\r\n$4\r\npong\r\n$1\r\nc\r\n:1\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$-1\r\n:1\r\n"}) {
    EXPECT_FALSE(read_push(**read(bytes))) << bytes;
  }
  EXPECT_THAT(read_push(**read("-NOPERM no\r\n")).error(), HasSubstr("NOPERM"));
}

}  // namespace
}  // namespace lockbench::redis
