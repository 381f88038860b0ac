#include <gtest/gtest.h>

#include <memory>

#include "tests/integration/testbed/proxy_fixture.h"

namespace lockbench::testbed {
namespace {

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
  ASSERT_EQ(connections_of(direct), 2U);

  silent->black_hole();
  const auto vanished = vanishing->vanish();
  ASSERT_TRUE(vanished) << vanished.error();
  EXPECT_TRUE(eventually([&] { return connections_of(direct) < 2; }));
  EXPECT_EQ(connections_of(direct), 1U) << "the silent one is still there";

  vanishing->heal();
  EXPECT_EQ(gone.end(), TcpClient::End::reset);
  TcpClient later(vanishing->port());
  EXPECT_EQ(later.ask("PING"), "+PONG");
}

}  // namespace
}  // namespace lockbench::testbed
