#include <gtest/gtest.h>

#include "testbed/proxy/proxy.h"
#include "tests/integration/testbed/support.h"
#include "tests/integration/testbed/tcp_client.h"

namespace lockbench::testbed {
namespace {

TEST(ProxyLead, GoesToAnotherServerWhenItIsTold) {
  const auto testbed = must_start();
  const auto first = must_start_redis(*testbed, {.durable = false});
  const auto second = must_start_redis(*testbed, {.durable = false});
  ASSERT_EQ(ask(second->port(), "SET place second"), "+OK");
  const auto pool = ProxyPool::start().value();
  const auto proxy = start_proxy(*pool, first->port()).value();
  TcpClient early(proxy->port());
  EXPECT_EQ(early.ask("EXISTS place"), ":0");
  proxy->lead_to(second->port());
  EXPECT_NE(early.end(), TcpClient::End::open) << "it belongs to the server of before";
  EXPECT_EQ(ask(proxy->port(), "EXISTS place"), ":1");
}

}  // namespace
}  // namespace lockbench::testbed
