#include "strategies/memcached/client/connection.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "tests/support/eventually.h"
#include "tests/support/scripted_dialer.h"
#include "tests/support/sim_env.h"

namespace lockbench::memcached {
namespace {

using namespace std::chrono_literals;
using test::kPatience;

class MemcachedConnection : public testing::Test {
 protected:
  Connection connection_to(test::ScriptedDialer& server) {
    return {*parse_endpoint("fake"), kPatience, env_, server};
  }

  SimClock clock_;
  SimEnv env_{clock_};
};

TEST_F(MemcachedConnection, TheEndOfAnIdleConnectionCostsNoCommand) {
  const std::string version = "VERSION 1.6.18\r\n", stored = "STORED\r\n";
  for (const bool closes : {true, false}) {
    test::ScriptedDialer server({version, stored, version, stored});
    Connection connection = connection_to(server);
    ASSERT_TRUE(connection.add("a", "x", 9));
    if (closes) {
      server.close();
    } else {
      server.send("SERVER_ERROR idle\r\n");
    }
    clock_.advance(2s);
    const auto next = connection.add("b", "x", 9);
    EXPECT_TRUE(next) << next.error().message;
    EXPECT_EQ(server.connections(), 2);
  }
}

TEST_F(MemcachedConnection, ABusyOneIsNotLookedAt) {
  test::ScriptedDialer server({"VERSION 1.6.18\r\n", "STORED\r\n", "STORED\r\n"});
  Connection connection = connection_to(server);
  ASSERT_TRUE(connection.add("a", "x", 9));
  clock_.advance(1s);
  ASSERT_TRUE(connection.add("b", "x", 9));
  EXPECT_EQ(server.looks(), 0);
}

TEST_F(MemcachedConnection, OnlyAnErrorThatSaysSoTookNoEffect) {
  using Kind = StoreError::Kind;
  for (const auto& [said, kind] : {std::pair("ERROR", Kind::rejected),
                                   {"CLIENT_ERROR bad data chunk", Kind::rejected},
                                   {"SERVER_ERROR out of memory storing object", Kind::rejected},
                                   {"SERVER_ERROR Connection timed out", Kind::unanswered}}) {
    test::ScriptedDialer server({"VERSION 1.6.18\r\n", std::string(said) + "\r\n"});
    const auto added = connection_to(server).add("a", "x", 9);
    ASSERT_FALSE(added) << said;
    EXPECT_EQ(added.error().kind, kind) << said;
    EXPECT_THAT(added.error().message, testing::HasSubstr(said));
  }
}

}  // namespace
}  // namespace lockbench::memcached
