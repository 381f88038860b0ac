#include "testbed/proxy/proxy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "testbed/servers/machine.h"
#include "tests/integration/testbed/proxy_fixture.h"

namespace lockbench::testbed {
namespace {

class ProxyTest : public ProxyFixture {};

std::string echoed(std::size_t count) {
  std::string answers;
  for (std::size_t i = 0; i < count; ++i)
    answers += "$6\r\n" + std::to_string(100'000 + i) + "\r\n";
  return answers;
}

TEST_F(ProxyTest, ManyBytesPassThroughASmallBuffer) {
  constexpr std::size_t kBytes = 20'000'000;
  const auto line = proxy({.delay = 1ms});
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
  const auto line = proxy();
  TcpClient client(line->port());
  line->delay(1h);
  std::string much;
  much.resize(64'000'000, 'x');  // kernel buffers hold a few million
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

TEST_F(ProxyTest, DelaysEachWay) {
  const auto line = proxy();
  TcpClient client(line->port());
  ASSERT_EQ(client.ask("PING"), "+PONG");
  line->delay(kDelay);
  EXPECT_GE(time_of(client, "PING"), 2 * kDelay);
  TcpClient later(line->port());
  EXPECT_GE(time_of(later, "PING"), 2 * kDelay);
}

TEST_F(ProxyTest, HealingGoesBackToTheLinesOwnDelayWhichKeepsManyCommandsInOrder) {
  constexpr std::size_t kCommands = 5000;
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  line->delay(1h);
  line->heal();
  std::string wanted;
  for (int i = 0; i < 50; ++i) wanted += echoed(kCommands / 50);
  const auto took = time_of([&] {
    for (int i = 0; i < 50; ++i) client.send(echoes(kCommands / 50));
    EXPECT_TRUE(client.lines(2 * kCommands) == wanted) << "all of it, in order";
  });
  EXPECT_GE(took, 2 * kDelay);
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

/// Keeps a connection busy until it ends, and reconnects until it is not accepted.
void keep_busy(std::uint16_t port, std::atomic<int>& answers) {
  try {
    while (true) {
      TcpClient client(port);
      while (client.send(echoes(20)) > 0 && !client.lines(40, kSilence).empty()) ++answers;
    }
  } catch (const std::runtime_error&) {
    return;  // the port is closed now
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
          line->black_hole({.share = 0.5});
          line->hold({.number = 2});
          line->delay(std::chrono::microseconds(i * 100));
          line->cut();
          line->heal();
        }
      });
    }
  }
  const int before = answers;
  EXPECT_TRUE(eventually([&] { return answers > before + 10; })) << "it is healed";
  pool_.reset();  // proxies may outlive it
  line.reset();
  clients.clear();  // ends all of them
}

}  // namespace
}  // namespace lockbench::testbed
