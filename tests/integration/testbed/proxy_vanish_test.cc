#include <gtest/gtest.h>

#include <memory>

#include "testbed/proxy/proxy.h"
#include "tests/integration/testbed/support.h"
#include "tests/integration/testbed/tcp_client.h"

namespace lockbench::testbed {
namespace {

/// How many connections a Redis has, the asking one apart.
std::size_t connections(TcpClient& redis) {
  const std::string size = redis.ask("CLIENT LIST TYPE normal");
  std::size_t lines = 0;
  for (std::size_t left = std::stoul(size.substr(1)) + 2; left > 0; ++lines) {
    left -= redis.lines(1).size();
  }
  return lines - 2;  // the last line is empty
}

std::unique_ptr<Proxy> line_to(ProxyPool& pool, const Server& server) {
  return start_proxy(pool, server.port()).value();
}

/// A server's keepalive tells the two apart: whoever is merely silent has a kernel that answers.
TEST(ProxyThatVanishes, DoesNotEvenAnswerTheServersKernel) {
  const auto testbed = must_start();
  const auto server = must_start_redis(*testbed, {.durable = false, .config = {"tcp-keepalive 1"}});
  const auto pool = ProxyPool::start().value();
  const auto vanishing = line_to(*pool, *server), silent = line_to(*pool, *server);
  TcpClient direct(server->port()), gone(vanishing->port()), muted(silent->port());
  ASSERT_EQ(gone.ask("PING"), "+PONG");
  ASSERT_EQ(muted.ask("PING"), "+PONG");
  ASSERT_EQ(connections(direct), 2U);

  silent->black_hole();
  const auto vanished = vanishing->vanish();
  ASSERT_TRUE(vanished) << vanished.error();
  EXPECT_TRUE(eventually([&] { return connections(direct) < 2; }));
  EXPECT_EQ(connections(direct), 1U) << "the silent one is still there";

  vanishing->heal();
  EXPECT_EQ(gone.end(), TcpClient::End::reset);
  TcpClient later(vanishing->port());
  EXPECT_EQ(later.ask("PING"), "+PONG");
}

}  // namespace
}  // namespace lockbench::testbed
