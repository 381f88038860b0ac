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

  /// The first line of the answer, or "error: ..." when there is none within a second.
  static std::string ask(const Server& server, const std::string& command) {
    const auto answer =
        ask_memcached(server, command + "\r\n", std::chrono::seconds(1),
                      [](std::string_view text) { return text.find("\r\n") != text.npos; });
    return answer ? answer->substr(0, answer->find("\r\n")) : "error: " + answer.error();
  }
};

TEST_F(Memcached, AnswersOnAPortOfItsOwnAndNowhereElse) {
  const auto one = must_start_memcached();
  const auto two = must_start_memcached();
  ASSERT_NE(one->port(), two->port());
  EXPECT_EQ(one->url(), "memcached://lockbench:" + testbed_->secret() + "@" + one->address());
  EXPECT_EQ(ask(*one, "add k 0 0 1\r\nv"), "STORED");
  EXPECT_EQ(ask(*two, "get k"), "END");
}

TEST_F(Memcached, ForgetsItsItemsWithItsProcess) {
  const auto server = must_start_memcached();
  ASSERT_EQ(ask(*server, "add k 0 0 1\r\nv"), "STORED");
  const std::uint16_t port = server->port();
  const pid_t pid = server->pid();
  ASSERT_TRUE(server->kill_hard());
  EXPECT_TRUE(pid_is_gone(pid));
  ASSERT_TRUE(server->restart(true));
  EXPECT_EQ(server->port(), port);
  EXPECT_EQ(ask(*server, "get k"), "END");
}

TEST_F(Memcached, FreezesAndThaws) {
  const auto server = must_start_memcached();
  ASSERT_TRUE(server->freeze());
  EXPECT_FALSE(ask_line(server->port(), "version\r\n", std::chrono::milliseconds(200)));
  ASSERT_TRUE(server->thaw());
  EXPECT_TRUE(eventually([&] { return ask(*server, "version").starts_with("VERSION"); }));
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
