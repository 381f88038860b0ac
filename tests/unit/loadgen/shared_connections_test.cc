#include "strategies/redis/client/shared_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "loadgen/fibers/pool.h"
#include "strategies/carrier.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"

namespace lockbench::redis {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A server that answers every command with its second word, or its first if there is no other;
/// until it is told otherwise. One generator thread.
class EchoServer {
 public:
  /// Commands as they came, and in how many pieces.
  std::vector<std::string> commands;
  int pieces = 0;
  bool holds_back = false;  ///< answers wait for release()

  void release(std::size_t answers = SIZE_MAX) {
    for (; answers > 0 && !held_.empty(); --answers) {
      output_ += held_.front();
      held_.erase(held_.begin());
    }
    came_->set();
  }
  void hang_up() {
    gone_ = true;
    came_->set();
  }

 private:
  friend class EchoTransport;

  void take(std::string_view bytes) {
    ++pieces;
    reader_.feed(bytes);
    for (auto next = reader_.next(); next && *next; next = reader_.next()) {
      const std::vector<Reply>& words = (*next)->elements;
      std::string line = words[0].text;
      for (std::size_t i = 1; i < words.size(); ++i) line += " " + words[i].text;
      commands.push_back(line);
      held_.push_back("+" + words[words.size() > 1 ? 1 : 0].text + "\r\n");
    }
    if (!holds_back) release();
  }

  ReplyReader reader_;
  std::vector<std::string> held_;
  std::string output_;
  bool gone_ = false;
  std::unique_ptr<Event> came_ = Carrier::current().make_event();
};

class EchoTransport : public Transport {
 public:
  explicit EchoTransport(std::shared_ptr<EchoServer> server) : server_(std::move(server)) {}

  Status send(std::string_view bytes, Duration /*timeout*/) override {
    if (server_->gone_) return Status::closed;
    server_->take(bytes);
    return Status::ok;
  }
  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    const TimePoint until = Carrier::current().now() + timeout;
    while (server_->output_.empty()) {
      if (server_->gone_) return {Status::closed, 0};
      const WaitResult waited = Carrier::current().wait(server_->came_.get(), until, stop);
      if (waited == WaitResult::stopped) return {Status::stopped, 0};
      if (waited == WaitResult::timed_out) return {Status::timed_out, 0};
    }
    const std::size_t size = std::min(buffer.size(), server_->output_.size());
    std::memcpy(buffer.data(), server_->output_.data(), size);
    server_->output_.erase(0, size);
    return {Status::ok, size};
  }
  bool usable() const override { return true; }
  int descriptor() const override { return -1; }

 private:
  const std::shared_ptr<EchoServer> server_;
};

class SharedConnections : public testing::Test {
 protected:
  using Body = std::function<void(Env& env)>;

  /// Runs these clients side by side, to their ends, and returns what any of them threw.
  std::string run(const std::vector<Body>& clients, int threads = 1) {
    auto pool = fibers::Pool::make(threads);
    if (!pool) return pool.error();
    factory_ = make_sharing_factory(
        {.connections = connections_, .threads = threads}, std::make_unique<FakeRedis>(clock_),
        [this](const Endpoint&, Duration, const std::stop_token&) { return dial(); });
    std::atomic<bool> threw = false;
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.reserve(clients.size());
    for (const Body& client : clients) {
      const auto number = static_cast<int>(tasks.size());
      auto task = (*pool)->start(
          number,
          [&client, number](const std::stop_token&) {
            const auto env = make_system_env(static_cast<std::uint64_t>(number));
            client(*env);
          },
          [&threw](const std::string&) { threw = true; });
      if (!task) return task.error();
      tasks.push_back(*std::move(task));
    }
    tasks.clear();
    factory_.reset();
    return threw ? "a client threw" : "";
  }

  std::unique_ptr<Connection> make(Env& env) { return factory_->make(endpoint_, timeout_, env); }
  EchoServer& server() { return *servers_.back(); }

  static void yield_until(const std::function<bool()>& condition) {
    const TimePoint until = Carrier::current().now() + test::kPatience;
    while (!condition() && Carrier::current().now() < until) Carrier::current().yield();
    EXPECT_TRUE(condition());
  }

  int connections_ = 1;
  Duration timeout_ = test::kPatience;
  Endpoint endpoint_{.host = "server", .port = 1};
  std::atomic<int> dialled_ = 0;
  bool refuses_ = false;
  bool holds_back_ = false;
  std::vector<std::shared_ptr<EchoServer>> servers_;
  SimClock clock_;
  std::unique_ptr<ConnectionFactory> factory_;

 private:
  tl::expected<std::unique_ptr<Transport>, std::string> dial() {
    ++dialled_;
    if (refuses_) return tl::unexpected<std::string>("connection refused");
    auto server = std::make_shared<EchoServer>();
    server->holds_back = holds_back_;
    const std::scoped_lock lock(dialling_);
    servers_.push_back(server);
    return std::make_unique<EchoTransport>(server);
  }

  std::mutex dialling_;
};

TEST_F(SharedConnections, EachClientGetsItsOwnAnswers) {
  constexpr int kClients = 20, kCalls = 50;
  int right = 0, started = 0;
  std::vector<Body> clients;
  clients.reserve(kClients);
  for (int number = 0; number < kClients; ++number) {
    clients.emplace_back([&, number](Env& env) {
      const auto connection = make(env);
      ++started;
      while (started < kClients) Carrier::current().yield();
      for (int i = 0; i < kCalls; ++i) {
        const std::string word = std::to_string(number) + ":" + std::to_string(i);
        const auto reply = connection->call({"GET", word});
        right += reply && reply->is_text(word) ? 1 : 0;
      }
    });
  }
  EXPECT_EQ(run(clients), "");
  EXPECT_EQ(right, kClients * kCalls);
  EXPECT_EQ(dialled_, 1);
  EXPECT_LT(server().pieces, kClients * kCalls / 2) << "what is queued meanwhile goes in one piece";
}

TEST_F(SharedConnections, ConnectionsAreSplitOverTheThreads) {
  connections_ = 5;
  std::atomic<int> right = 0;
  const std::vector<Body> clients(40, [&](Env& env) {
    const auto connection = make(env);
    right += connection->connect() && connection->call({"GET", "a"})->is_text("a") ? 1 : 0;
  });
  EXPECT_EQ(run(clients, 2), "");
  EXPECT_EQ(right, 40);
  EXPECT_EQ(dialled_, 5);
}

TEST_F(SharedConnections, ThePipelineOfOneClientIsNotInterrupted) {
  const std::vector<Body> clients(8, [&](Env& env) {
    const auto connection = make(env);
    for (const char* const word : {"MULTI", "INCR", "EXEC"}) {
      connection->queue({word});
      Carrier::current().yield();
    }
    for (const char* const word : {"MULTI", "INCR", "EXEC"}) {
      EXPECT_TRUE(connection->receive()->is_text(word));
    }
  });
  EXPECT_EQ(run(clients), "");
  ASSERT_EQ(server().commands.size(), 24U);
  for (std::size_t i = 0; i < 24; i += 3) {
    EXPECT_EQ(server().commands[i], "MULTI");
    EXPECT_EQ(server().commands[i + 2], "EXEC");
  }
}

TEST_F(SharedConnections, ABreakFailsAllThatIsUnderWayAndTheNextCommandConnectsAgain) {
  constexpr int kClients = 3;
  holds_back_ = true;
  int unanswered = 0, answered_later = 0;
  std::vector<Body> clients(kClients, [&](Env& env) {
    const auto connection = make(env);
    const auto lost = connection->call({"GET", "a"});
    ASSERT_FALSE(lost);
    unanswered += lost.error().kind == StoreError::Kind::unanswered ? 1 : 0;
    EXPECT_THAT(lost.error().message, HasSubstr("server:1"));
    const std::uint64_t before = connection->times_connected();
    answered_later += connection->call({"GET", "b"}) ? 1 : 0;
    EXPECT_GT(connection->times_connected(), before);
  });
  clients.emplace_back([&](Env&) {
    yield_until([&] { return !servers_.empty() && server().commands.size() == kClients; });
    holds_back_ = false;
    server().hang_up();
  });
  EXPECT_EQ(run(clients), "");
  EXPECT_EQ(unanswered, kClients);
  EXPECT_EQ(answered_later, kClients);
  EXPECT_EQ(dialled_, 2);
}

TEST_F(SharedConnections, AFailedConnectionIsEachClientsFailure) {
  refuses_ = true;
  int refused = 0;
  const std::vector<Body> clients(3, [&](Env& env) {
    const auto connection = make(env);
    const auto connected = connection->connect();
    const auto called = connection->call({"GET", "a"});
    ASSERT_FALSE(connected || called);
    for (const StoreError& error : {connected.error(), called.error()}) {
      refused += error.kind == StoreError::Kind::not_sent ? 1 : 0;
      EXPECT_EQ(error.message, "server:1: connection refused");
    }
  });
  EXPECT_EQ(run(clients), "");
  EXPECT_EQ(refused, 6);
}

TEST_F(SharedConnections, ASilentServerIsGivenUpAfterTheTimeout) {
  timeout_ = 50ms;
  holds_back_ = true;
  const Body client = [&](Env& env) {
    const auto connection = make(env);
    const auto lost = connection->call({"GET", "a"});
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, StoreError::Kind::unanswered);
    EXPECT_THAT(lost.error().message, HasSubstr("50ms"));
    holds_back_ = false;
    EXPECT_TRUE(connection->call({"GET", "b"})->is_text("b"));
  };
  EXPECT_EQ(run({client}), "");
  EXPECT_EQ(dialled_, 2);
}

TEST_F(SharedConnections, AnAnswerThatComesTooLateIsNobodyElses) {
  holds_back_ = true;
  std::stop_source stop;
  bool stopped = false;
  const Body impatient = [&](Env& env) {
    const auto connection = make(env);
    const auto lost = connection->call({"GET", "late"}, stop.get_token());
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, StoreError::Kind::unanswered);
    stopped = true;
    EXPECT_TRUE(connection->call({"GET", "mine"})->is_text("mine"));
  };
  const Body patient = [&](Env& env) {
    const auto connection = make(env);
    EXPECT_TRUE(connection->call({"GET", "yours"})->is_text("yours"));
  };
  const Body director = [&](Env&) {
    yield_until([&] { return !servers_.empty() && server().commands.size() == 2; });
    stop.request_stop();
    yield_until([&] { return stopped; });
    server().holds_back = false;
    server().release();
  };
  EXPECT_EQ(run({impatient, patient, director}), "");
  EXPECT_EQ(dialled_, 1) << "a stop of one client is no failure of the others";
}

TEST_F(SharedConnections, ACutCommandBreaksTheConnection) {
  class CuttingEnv : public ForwardingEnv {
   public:
    using ForwardingEnv::ForwardingEnv;
    CommandFate before_command(const CommandInfo& command) override {
      return command.name == "CUT" ? CommandFate::drop : CommandFate::proceed;
    }
  };
  const Body client = [&](Env& inner) {
    CuttingEnv env(inner);
    const auto connection = make(env);
    EXPECT_TRUE(connection->call({"GET", "a"}));
    connection->queue({"CUT"});
    connection->queue({"GET", "b"});
    for (int i = 0; i < 2; ++i) {
      const auto lost = connection->receive();
      ASSERT_FALSE(lost);
      EXPECT_EQ(lost.error().kind, StoreError::Kind::not_sent);
    }
    EXPECT_TRUE(connection->call({"GET", "c"})->is_text("c"));
  };
  EXPECT_EQ(run({client}), "");
  EXPECT_EQ(dialled_, 2);
}

TEST_F(SharedConnections, AnswersSetTheEventOfWhoAsksForIt) {
  holds_back_ = true;
  const Body client = [&](Env& env) {
    const auto answered = Carrier::current().make_event();
    const auto connection = make(env);
    EXPECT_TRUE(connection->notify_by(*answered));
    connection->queue({"GET", "a"});
    connection->flush();
    EXPECT_GE(connection->descriptor(), 0);
    EXPECT_FALSE(connection->receive_within({}));
    EXPECT_EQ(
        Carrier::current().wait(answered.get(), Carrier::current().now() + test::kPatience, {}),
        WaitResult::signalled);
    EXPECT_LT(connection->descriptor(), 0);
    const auto reply = connection->receive_within({});
    ASSERT_TRUE(reply && *reply);
    EXPECT_TRUE((*reply)->is_text("a"));
  };
  const Body director = [&](Env&) {
    yield_until([&] { return !servers_.empty() && server().commands.size() == 1; });
    server().release();
  };
  EXPECT_EQ(run({client, director}), "");
}

TEST_F(SharedConnections, CommandsThatWaitAtTheServerGoElsewhere) {
  const Body client = [&](Env& env) {
    const auto connection = make(env);
    EXPECT_TRUE(connection->call({"GET", "a"}));
    (void)connection->call_blocking({"BLPOP", "list", "1"}, 1s, {});
    EXPECT_TRUE(connection->call({"GET", "b"})->is_text("b"));
  };
  EXPECT_EQ(run({client}), "");
  EXPECT_EQ(server().commands, (std::vector<std::string>{"GET a", "GET b"}));
}

TEST_F(SharedConnections, AThreadOfItsOwnGetsAConnectionOfItsOwn) {
  factory_ = make_sharing_factory(
      {}, std::make_unique<FakeRedis>(clock_),
      [](const Endpoint&, Duration,
         const std::stop_token&) -> tl::expected<std::unique_ptr<Transport>, std::string> {
        return tl::unexpected<std::string>("not to be called");
      });
  const auto env = make_system_env(1);
  EXPECT_TRUE(make(*env)->connect());
}

}  // namespace
}  // namespace lockbench::redis
