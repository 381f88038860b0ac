#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testbed/servers/memcached_server.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

class Memcached : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();

  std::unique_ptr<Server> must_start_memcached(const MemcachedOptions& options = {}) {
    auto server = start_memcached(*testbed_, options);
    EXPECT_TRUE(server) << server.error();
    return server ? *std::move(server) : nullptr;
  }
};

TEST_F(Memcached, AnswersOnAPortOfItsOwnAndNowhereElse) {
  const auto one = must_start_memcached();
  const auto two = must_start_memcached();
  ASSERT_NE(one->port(), two->port());
  EXPECT_EQ(one->url(), "127.0.0.1:" + std::to_string(one->port()));
  EXPECT_EQ(ask(one->port(), "add k 0 0 1\r\nv"), "STORED");
  EXPECT_EQ(ask(two->port(), "get k"), "END");
}

TEST_F(Memcached, ForgetsItsItemsWithItsProcess) {
  const auto server = must_start_memcached();
  ASSERT_EQ(ask(server->port(), "add k 0 0 1\r\nv"), "STORED");
  const std::uint16_t port = server->port();
  const pid_t pid = server->pid();
  ASSERT_TRUE(server->kill_hard());
  EXPECT_TRUE(pid_is_gone(pid));
  ASSERT_TRUE(server->restart(true));
  EXPECT_EQ(server->port(), port);
  EXPECT_EQ(ask(port, "get k"), "END");
}

TEST_F(Memcached, FreezesAndThaws) {
  const auto server = must_start_memcached();
  ASSERT_TRUE(server->freeze());
  EXPECT_FALSE(ask_line(server->port(), "version\r\n", std::chrono::milliseconds(200)));
  ASSERT_TRUE(server->thaw());
  EXPECT_TRUE(eventually([&] { return ask(server->port(), "version").starts_with("VERSION"); }));
}

TEST_F(Memcached, TriesAnotherPortWhenItLosesTheRace) {
  const auto other = must_start_memcached();  // answers, but is not ours
  const std::uint16_t good = free_loopback_port().value();
  int calls = 0;
  MemcachedOptions options;
  options.choose_port = [&]() -> tl::expected<std::uint16_t, std::string> {
    return calls++ == 0 ? other->port() : good;
  };
  const auto server = must_start_memcached(options);
  EXPECT_EQ(server->port(), good);
  EXPECT_EQ(calls, 2);
}

TEST_F(Memcached, TellsWhatIsMissing) {
  const auto found = find_program(kMemcached, "/nowhere");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), "memcached not found: install the package memcached");
}

}  // namespace
}  // namespace lockbench::testbed
