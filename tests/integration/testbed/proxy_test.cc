#include "testbed/proxy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testbed/open_files.h"
#include "tests/integration/testbed/support.h"
#include "tests/integration/testbed/tcp_client.h"

namespace lockbench::testbed {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using End = TcpClient::End;

/// How long we listen to be sure that nothing comes; an answer takes a small part of it.
constexpr auto kSilence = 150ms;
constexpr auto kDelay = 30ms;

class ProxyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    testbed = must_start();
    server = must_start_redis(*testbed, {.durable = false});
  }
  static void TearDownTestSuite() {
    server.reset();
    testbed.reset();
  }

  ProxyTest() { EXPECT_EQ(direct_.ask("FLUSHALL"), "+OK"); }

  std::unique_ptr<Proxy> proxy(const ProxyOptions& options = {}) {
    return proxy_before(server->port(), options);
  }
  std::unique_ptr<Proxy> proxy_before(std::uint16_t port, const ProxyOptions& options = {}) {
    auto started = start_proxy(*pool_, port, options);
    if (!started) throw std::runtime_error(started.error());
    return *std::move(started);
  }

  /// How many connections the server has, this one apart.
  std::size_t server_connections() {
    const std::string size = direct_.ask("CLIENT LIST TYPE normal");
    std::size_t lines = 0;
    for (std::size_t left = std::stoul(size.substr(1)) + 2; left > 0; ++lines) {
      left -= direct_.lines(1).size();
    }
    return lines - 2;  // the last line is empty
  }

  static inline std::unique_ptr<Testbed> testbed;
  static inline std::unique_ptr<RedisServer> server;
  std::unique_ptr<ProxyPool> pool_ = ProxyPool::start().value();
  TcpClient direct_{server->port()};
};

std::vector<std::unique_ptr<TcpClient>> connect(const Proxy& proxy, std::size_t count) {
  std::vector<std::unique_ptr<TcpClient>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<TcpClient>(proxy.port()));
    // In this order, so that their numbers are known.
    EXPECT_TRUE(eventually([&] { return proxy.counts().accepted == i + 1; }));
  }
  return clients;
}

Clock::duration time_of(TcpClient& client, const std::string& command) {
  const auto begin = Clock::now();
  EXPECT_NE(client.ask(command), "");
  return Clock::now() - begin;
}

/// Of many tries, as the machine may be busy.
Clock::duration fastest(TcpClient& client, const std::string& command) {
  Clock::duration result = time_of(client, command);
  for (int i = 0; i < 20; ++i) result = std::min(result, time_of(client, command));
  return result;
}

std::string echoes(std::size_t count) {
  std::string commands;
  for (std::size_t i = 0; i < count; ++i)
    commands += "ECHO " + std::to_string(100'000 + i) + "\r\n";
  return commands;
}

std::string echoed(std::size_t count) {
  std::string answers;
  for (std::size_t i = 0; i < count; ++i)
    answers += "$6\r\n" + std::to_string(100'000 + i) + "\r\n";
  return answers;
}

TEST_F(ProxyTest, LetsEverythingThrough) {
  const auto line = proxy();
  TcpClient client(line->port());
  EXPECT_EQ(client.ask("SET key value"), "+OK");
  EXPECT_EQ(direct_.ask("EXISTS key"), ":1");
  constexpr std::size_t kCommands = 3000;
  EXPECT_EQ(client.send(echoes(kCommands)), echoes(kCommands).size());
  EXPECT_TRUE(client.lines(2 * kCommands) == echoed(kCommands));
  const ProxyCounts counts = line->counts();
  EXPECT_EQ(counts.accepted, 1U);
  EXPECT_EQ(counts.open, 1U);
  EXPECT_EQ(counts.to_server, echoes(kCommands).size() + std::string("SET key value\r\n").size());
  EXPECT_EQ(counts.to_client, echoed(kCommands).size() + std::string("+OK\r\n").size());
  EXPECT_EQ(counts.swallowed, 0U);
}

TEST_F(ProxyTest, ManyBytesPassThroughASmallBuffer) {
  constexpr std::size_t kBytes = 20'000'000;
  const auto line = proxy({.delay = 1ms, .buffer_bytes = 100'000});
  TcpClient client(line->port());
  std::string value;
  value.resize(kBytes, 'x');
  const std::string head = "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$20000000\r\n";
  EXPECT_EQ(client.send(head + value + "\r\n"), head.size() + kBytes + 2);
  EXPECT_EQ(client.lines(1), "+OK\r\n");
  EXPECT_EQ(client.ask("GET big"), "$20000000");
  EXPECT_TRUE(client.lines(1) == value + "\r\n");
}

TEST_F(ProxyTest, AFullBufferKeepsTheSenderWaiting) {
  const auto line = proxy({.buffer_bytes = 100'000});
  TcpClient client(line->port());
  line->delay(1h, Direction::to_server);
  std::string much;
  much.resize(64'000'000, 'x');  // what the kernel keeps is a few millions
  EXPECT_LT(client.send(much, 1s), much.size());
}

TEST_F(ProxyTest, ClientsMayFinishSendingFirst) {
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  client.send("PING\r\n");
  client.finish_sending();
  EXPECT_EQ(client.lines(1), "+PONG\r\n");
  EXPECT_EQ(client.end(), End::closed);
  EXPECT_TRUE(eventually([&] { return line->counts().open == 0; }));
}

TEST_F(ProxyTest, EndsAreToldToTheOtherSide) {
  const auto line = proxy();
  const std::size_t before = server_connections();
  auto client = std::make_unique<TcpClient>(line->port());
  EXPECT_EQ(client->ask("PING"), "+PONG");
  EXPECT_EQ(server_connections(), before + 1);
  client.reset();
  EXPECT_TRUE(eventually([&] { return server_connections() == before; }));

  TcpClient quitter(line->port());
  EXPECT_EQ(quitter.ask("QUIT"), "+OK");
  EXPECT_EQ(quitter.end(), End::closed);
}

TEST_F(ProxyTest, AServerThatIsNotThereResetsTheClient) {
  const auto line = proxy_before(free_loopback_port().value());
  TcpClient client(line->port());
  EXPECT_EQ(client.end(), End::reset);
}

TEST_F(ProxyTest, WhatIsNoAddressIsRefused) {
  const auto line = start_proxy(*pool_, 1, {.host = "no address"});
  ASSERT_FALSE(line);
  EXPECT_NE(line.error().find("no address"), std::string::npos) << line.error();
}

TEST_F(ProxyTest, TriesAnotherPortWhenItLosesTheRace) {
  const std::uint16_t good = free_loopback_port().value();
  int calls = 0;
  ProxyOptions options;
  options.choose_port = [&]() -> tl::expected<std::uint16_t, std::string> {
    return calls++ == 0 ? server->port() : good;
  };
  EXPECT_EQ(proxy(options)->port(), good);
}

TEST_F(ProxyTest, DelaysEachWay) {
  const auto line = proxy();
  TcpClient client(line->port());
  EXPECT_LT(fastest(client, "PING"), kDelay);
  line->delay(kDelay);
  EXPECT_GE(time_of(client, "PING"), 2 * kDelay);
  TcpClient later(line->port());
  EXPECT_GE(time_of(later, "PING"), 2 * kDelay);
  line->delay(0ms, Direction::to_server);
  const auto one_way = fastest(client, "PING");
  EXPECT_GE(one_way, kDelay);
  EXPECT_LT(one_way, 2 * kDelay);
  line->heal();
  EXPECT_LT(fastest(client, "PING"), kDelay);
}

TEST_F(ProxyTest, HealingGoesBackToTheLinesOwnDelay) {
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  EXPECT_GE(time_of(client, "PING"), 2 * kDelay);
  line->delay(0ms);
  EXPECT_LT(fastest(client, "PING"), kDelay);
  line->heal();
  EXPECT_GE(time_of(client, "PING"), 2 * kDelay);
}

TEST_F(ProxyTest, ADelayIsNoThrottle) {
  constexpr std::size_t kCommands = 5000;
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  const auto begin = Clock::now();
  for (int i = 0; i < 50; ++i) client.send(echoes(kCommands / 50));
  std::string wanted;
  for (int i = 0; i < 50; ++i) wanted += echoed(kCommands / 50);
  EXPECT_TRUE(client.lines(2 * kCommands) == wanted) << "all of it, in order";
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, 2 * kDelay);
  EXPECT_LT(took, static_cast<int>(kCommands) * 2 * kDelay / 50)
      << "one after the other takes fifty times as long";
}

TEST_F(ProxyTest, AShorterDelayDoesNotOvertakeALongerOne) {
  const auto line = proxy();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->delay(200ms, Direction::to_client);
  const auto begin = Clock::now();
  client.send("ECHO first\r\n");
  ASSERT_TRUE(eventually([&] { return line->counts().to_server > 6; }));
  EXPECT_EQ(direct_.ask("PING"), "+PONG") << "after the first";
  std::this_thread::sleep_for(kDelay);  // its answer is on its way
  line->delay(0ms);
  client.send("ECHO second\r\n");
  EXPECT_EQ(client.lines(4), "$5\r\nfirst\r\n$6\r\nsecond\r\n");
  EXPECT_GE(Clock::now() - begin, 200ms);
}

TEST_F(ProxyTest, ABlackHoleIsAHostThatVanished) {
  const auto line = proxy();
  const std::size_t before = server_connections();
  auto gone = std::make_unique<TcpClient>(line->port());
  TcpClient asking(line->port()), idle(line->port());
  for (TcpClient* client : {gone.get(), &asking, &idle}) EXPECT_EQ(client->ask("PING"), "+PONG");
  line->black_hole();
  asking.send("SET key value\r\n");
  TcpClient newcomer(line->port());
  newcomer.send("SET key value\r\n");
  gone.reset();
  for (TcpClient* client : {&asking, &newcomer, &idle}) {
    EXPECT_EQ(client->end(kSilence), End::open);
  }
  EXPECT_EQ(server_connections(), before + 3) << "nobody told it that one is gone";

  line->heal();
  EXPECT_EQ(asking.end(), End::reset) << "its stream has a hole";
  EXPECT_EQ(newcomer.end(), End::reset);
  EXPECT_EQ(idle.ask("PING"), "+PONG") << "it has lost nothing";
  TcpClient later(line->port());
  EXPECT_EQ(later.ask("EXISTS key"), ":0");
  EXPECT_TRUE(eventually([&] { return server_connections() == before + 2; }));
  EXPECT_EQ(line->counts().swallowed, 2 * std::string("SET key value\r\n").size());
}

TEST_F(ProxyTest, ABlackHoleSwallowsWhatIsUnderWay) {
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->delay(1h, Direction::to_server);
  const std::string set = "SET key value\r\n";
  client.send(set);
  const auto swallowed = [&] { return line->counts().swallowed == set.size(); };
  line->black_hole();
  EXPECT_TRUE(eventually(swallowed));
  line->heal();
  EXPECT_EQ(client.end(), End::reset);
  EXPECT_EQ(direct_.ask("EXISTS key"), ":0");
}

TEST_F(ProxyTest, AnAnswerMayGetLostThoughTheRequestWasApplied) {
  const auto line = proxy();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->black_hole(Direction::to_client);
  EXPECT_EQ(client.ask("SET key value", kSilence), "");
  EXPECT_EQ(direct_.ask("EXISTS key"), ":1");
  TcpClient newcomer(line->port());
  EXPECT_EQ(newcomer.ask("SET other value", kSilence), "");
  EXPECT_EQ(direct_.ask("EXISTS other"), ":0") << "connecting needs both directions";
}

TEST_F(ProxyTest, ARequestMayGetLostAlone) {
  const auto line = proxy();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("SUBSCRIBE news"), "*3");
  EXPECT_EQ(client.lines(5), "$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
  line->black_hole(Direction::to_server);
  EXPECT_EQ(client.ask("PING", kSilence), "");
  EXPECT_EQ(direct_.ask("PUBLISH news x"), ":1");
  EXPECT_EQ(client.lines(7), "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n");
}

TEST_F(ProxyTest, WhatIsHeldArrivesLate) {
  const auto line = proxy();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->hold();
  EXPECT_EQ(client.ask("SET key value", kSilence), "");
  EXPECT_EQ(direct_.ask("EXISTS key"), ":0");
  TcpClient newcomer(line->port());
  EXPECT_EQ(newcomer.ask("PING", kSilence), "");
  line->heal();
  EXPECT_EQ(client.lines(1), "+OK\r\n");
  EXPECT_EQ(direct_.ask("EXISTS key"), ":1");
  EXPECT_EQ(newcomer.end(), End::reset);
}

TEST_F(ProxyTest, ACutIsSeenAtOnceByBothSides) {
  const auto line = proxy();
  const std::size_t before = server_connections();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->cut();
  EXPECT_EQ(line->counts().open, 0U);
  EXPECT_EQ(client.end(), End::reset);
  EXPECT_TRUE(eventually([&] { return server_connections() == before; }));
  TcpClient later(line->port());
  EXPECT_EQ(later.ask("PING"), "+PONG");
}

TEST_F(ProxyTest, RefusesNewConnectionsUntilHealed) {
  const auto line = proxy();
  TcpClient old(line->port());
  ASSERT_EQ(old.ask("PING"), "+PONG");
  line->refuse();
  TcpClient refused(line->port());
  EXPECT_EQ(refused.end(), End::reset);
  EXPECT_EQ(line->counts().refused, 1U);
  EXPECT_EQ(old.ask("PING"), "+PONG");
  line->heal();
  TcpClient later(line->port());
  EXPECT_EQ(later.ask("PING"), "+PONG");
}

TEST_F(ProxyTest, ConcernsTheChosenConnectionsOnly) {
  const auto line = proxy();
  const auto clients = connect(*line, 3);
  line->cut(Connections::number(2));
  EXPECT_EQ(clients[1]->end(), End::reset);
  line->black_hole(Direction::both, Connections::number(3));
  line->delay(kDelay, Direction::both, Connections::number(4));
  EXPECT_LT(fastest(*clients[0], "PING"), 2 * kDelay);
  EXPECT_EQ(clients[2]->ask("PING", kSilence), "");
  TcpClient fourth(line->port());
  EXPECT_GE(time_of(fourth, "PING"), 2 * kDelay);
  TcpClient fifth(line->port());
  EXPECT_LT(fastest(fifth, "PING"), 2 * kDelay);
}

TEST_F(ProxyTest, ConcernsAShareOfTheConnections) {
  const auto line = proxy();
  const auto clients = connect(*line, 12);
  line->cut(Connections::open_now().share(0.25));
  EXPECT_EQ(line->counts().open, 9U);
  line->refuse(Connections::from_now_on().share(0.5));
  const auto newcomers = [&] {
    std::vector<std::unique_ptr<TcpClient>> more;
    more.reserve(10);
    for (int i = 0; i < 10; ++i) more.push_back(std::make_unique<TcpClient>(line->port()));
    return more;
  }();
  EXPECT_TRUE(eventually([&] { return line->counts().accepted == 22; }));
  EXPECT_EQ(line->counts().refused, 5U);
}

TEST_F(ProxyTest, ConcernsOldOrNewConnectionsOnly) {
  const auto line = proxy();
  TcpClient old(line->port());
  ASSERT_EQ(old.ask("PING"), "+PONG");
  line->delay(kDelay, Direction::both, Connections::from_now_on());
  EXPECT_LT(fastest(old, "PING"), 2 * kDelay);
  TcpClient later(line->port());
  EXPECT_GE(time_of(later, "PING"), 2 * kDelay);
  line->heal();
  line->delay(kDelay, Direction::both, Connections::open_now());
  EXPECT_GE(time_of(old, "PING"), 2 * kDelay);
  TcpClient last(line->port());
  EXPECT_LT(fastest(last, "PING"), 2 * kDelay);
}

TEST_F(ProxyTest, ServesAThousandConnectionsAtOnce) {
  constexpr std::size_t kClients = 1000;
  ASSERT_TRUE(raise_open_file_limit(3 * kClients + 200));
  const auto line = proxy({.delay = kDelay});
  std::vector<std::unique_ptr<TcpClient>> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<TcpClient>(line->port()));
    clients.back()->send("PING\r\n");
  }
  for (const auto& client : clients) ASSERT_EQ(client->lines(1), "+PONG\r\n");
  EXPECT_EQ(line->counts().open, kClients);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return line->counts().open == 0; }));
}

/// Keeps a connection busy until it ends, and connects anew until nobody accepts.
void keep_busy(std::uint16_t port, std::atomic<int>& answers) {
  try {
    while (true) {
      TcpClient client(port);
      while (client.send(echoes(20)) > 0 && !client.lines(40, kSilence).empty()) ++answers;
    }
  } catch (const std::runtime_error&) {
    return;  // nobody listens there any more
  }
}

TEST_F(ProxyTest, EndsWhileItIsBusyAndFaultsComeFromEverywhere) {
  auto line = proxy({.delay = 1ms});
  std::atomic<int> answers = 0;
  std::vector<std::jthread> clients;
  clients.reserve(6);
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&, port = line->port()] { keep_busy(port, answers); });
  }
  EXPECT_TRUE(eventually([&] { return answers > 10; }));
  {
    std::vector<std::jthread> players;
    players.reserve(3);
    for (int player = 0; player < 3; ++player) {
      players.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          line->black_hole(Direction::to_client, Connections::all().share(0.5));
          line->hold(Direction::to_server, Connections::number(2));
          line->delay(std::chrono::microseconds(i * 100));
          line->cut(Connections::open_now().share(0.3));
          line->heal();
        }
      });
    }
  }
  const int before = answers;
  EXPECT_TRUE(eventually([&] { return answers > before + 10; })) << "it is healed";
  pool_.reset();  // proxies may outlive it
  line.reset();
  clients.clear();  // all of them end
}

}  // namespace
}  // namespace lockbench::testbed
