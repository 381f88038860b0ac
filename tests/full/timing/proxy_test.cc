#include <gtest/gtest.h>

#include "tests/full/timing/timed.h"
#include "tests/integration/testbed/proxy_fixture.h"

namespace lockbench::testbed {
namespace {

class ProxySpeed : public ProxyFixture {};

TEST_F(ProxySpeed, ADelayIsNoThrottle) {
  constexpr int kPieces = 50;
  constexpr auto kFar = 100ms;
  const auto line = proxy({.delay = kFar});
  TcpClient client(line->port());
  const auto took = time_of([&] {
    for (int i = 0; i < kPieces; ++i) client.send(echoes(100));
    EXPECT_NE(client.lines(kPieces * 2 * 100), "");
  });
  EXPECT_TRUE(test::in_time(took, 2 * kFar)) << "one after the other they take ten seconds";
}

}  // namespace
}  // namespace lockbench::testbed
