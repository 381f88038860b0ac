#include <gtest/gtest.h>

#include "tests/integration/testbed/proxy_fixture.h"

namespace lockbench::testbed {
namespace {

class ProxySpeed : public ProxyFixture {};

TEST_F(ProxySpeed, ADelayIsNoThrottle) {
  constexpr int kPieces = 50;
  const auto line = proxy({.delay = kDelay});
  TcpClient client(line->port());
  const auto took = time_of([&] {
    for (int i = 0; i < kPieces; ++i) client.send(echoes(100));
    EXPECT_NE(client.lines(kPieces * 2 * 100), "");
  });
  EXPECT_LT(took, kPieces * 2 * kDelay) << "one after the other they take fifty times the delay";
}

}  // namespace
}  // namespace lockbench::testbed
