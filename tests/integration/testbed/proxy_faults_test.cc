#include <gtest/gtest.h>

#include <algorithm>

#include "testbed/proxy/proxy.h"
#include "tests/integration/testbed/proxy_fixture.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

class ProxyFaultsTest : public ProxyFixture {};

std::vector<std::unique_ptr<TcpClient>> connect(const Proxy& proxy, std::size_t count) {
  const std::uint64_t before = proxy.counts().accepted;
  std::vector<std::unique_ptr<TcpClient>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<TcpClient>(proxy.port()));
    // One after the other, so that their numbers are known.
    EXPECT_TRUE(eventually([&] { return proxy.counts().accepted == before + i + 1; }));
  }
  return clients;
}

TEST_F(ProxyFaultsTest, ABlackHoleIsAHostThatVanished) {
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

TEST_F(ProxyFaultsTest, WhatIsHeldArrivesLate) {
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

TEST_F(ProxyFaultsTest, ACutIsSeenAtOnceByBothSides) {
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

TEST_F(ProxyFaultsTest, ConcernsAShareOfTheConnections) {
  const auto line = proxy();
  const auto old = connect(*line, 8);
  line->hold({.share = 0.25});
  const auto later = connect(*line, 4);
  const auto answered = [](const auto& clients) {
    return std::count_if(clients.begin(), clients.end(), [](const auto& client) {
      return client->ask("PING", kSilence) == "+PONG";
    });
  };
  EXPECT_EQ(answered(old), 6);
  EXPECT_EQ(answered(later), 3);
}

TEST_F(ProxyFaultsTest, ConcernsOldOrNewConnectionsOnly) {
  const auto line = proxy();
  TcpClient old(line->port());
  ASSERT_EQ(old.ask("PING"), "+PONG");
  line->delay(1h, {.open = false});
  EXPECT_EQ(old.ask("PING"), "+PONG");
  TcpClient later(line->port());
  EXPECT_EQ(later.ask("PING", kSilence), "");
  line->heal();
  line->delay(1h, {.new_ones = false});
  EXPECT_EQ(old.ask("PING", kSilence), "");
  TcpClient last(line->port());
  EXPECT_EQ(last.ask("PING"), "+PONG");
}

TEST_F(ProxyFaultsTest, GoesToAnotherServerWhenItIsTold) {
  const auto second = must_start_redis(*testbed, {.durable = false});
  ASSERT_EQ(ask(second->port(), "SET place second"), "+OK");
  const auto line = proxy();
  TcpClient early(line->port());
  EXPECT_EQ(early.ask("EXISTS place"), ":0");
  line->lead_to(second->port());
  EXPECT_NE(early.end(), End::open) << "it belongs to the server of before";
  EXPECT_EQ(ask(line->port(), "EXISTS place"), ":1");
}

/// A server's keepalive tells the two apart: the kernel of a silent client still answers.
TEST_F(ProxyFaultsTest, AVanishedHostDoesNotEvenAnswerTheServersKernel) {
  const auto alert = must_start_redis(*testbed, {.durable = false, .config = {"tcp-keepalive 1"}});
  const auto vanishing = proxy_before(alert->port()), silent = proxy_before(alert->port());
  TcpClient direct(alert->port()), gone(vanishing->port()), muted(silent->port());
  ASSERT_EQ(gone.ask("PING"), "+PONG");
  ASSERT_EQ(muted.ask("PING"), "+PONG");
  ASSERT_EQ(connections_of(direct), 2U);

  silent->black_hole();
  const auto vanished = vanishing->vanish();
  ASSERT_TRUE(vanished) << vanished.error();
  EXPECT_TRUE(eventually([&] { return connections_of(direct) < 2; }));
  EXPECT_EQ(connections_of(direct), 1U) << "the silent one is still there";

  vanishing->heal();
  EXPECT_EQ(gone.end(), End::reset);
  TcpClient later(vanishing->port());
  EXPECT_EQ(later.ask("PING"), "+PONG");
}

}  // namespace
}  // namespace lockbench::testbed
