#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/integration/testbed/support.h"
#include "tests/support/listener.h"
#include "tests/support/variable.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

class Redis : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();
};

PortChooser choosing(std::uint16_t port, std::atomic<int>& calls) {
  return [port, &calls]() -> tl::expected<std::uint16_t, std::string> {
    ++calls;
    return port;
  };
}

TEST_F(Redis, IsGoneWithItsHandle) {
  auto server = must_start_redis(*testbed_);
  const pid_t pid = server->pid();
  const fs::path folder = server->data_folder().parent_path();
  ASSERT_TRUE(fs::exists(folder));
  server.reset();
  EXPECT_TRUE(pid_is_gone(pid));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Redis, LosesItsDataWithoutDurability) {
  const auto server = must_start_redis(*testbed_, {.durable = false});
  ASSERT_EQ(ask(server->port(), "SET key value"), "+OK");
  ASSERT_TRUE(server->restart(true));
  EXPECT_EQ(ask(server->port(), "EXISTS key"), ":0");
}

TEST_F(Redis, TellsWhatIsMissing) {
  const test::Variable nowhere("PATH", "/nowhere");
  const auto server = start_redis(*testbed_);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), "redis-server not found: install the package redis-server");
}

TEST_F(Redis, GivesUpAfterFivePorts) {
  const test::Listener taken;
  std::atomic<int> calls = 0;
  testbed_->choose_port = choosing(taken.port(), calls);
  const auto server = start_redis(*testbed_);
  ASSERT_FALSE(server);
  EXPECT_EQ(calls, 5);
  EXPECT_NE(server.error().find("Address already in use"), std::string::npos) << server.error();
}

TEST_F(Redis, DoesNotTryAgainAfterAnotherError) {
  std::atomic<int> calls = 0;
  testbed_->choose_port = choosing(free_loopback_port().value(), calls);
  const auto server = start_redis(*testbed_, {.config = {"no-such-directive yes"}});
  ASSERT_FALSE(server);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(server.error().find("no-such-directive"), std::string::npos) << server.error();
}

TEST_F(Redis, LetsNobodyInWithoutTheSecret) {
  const auto server =
      start_redis(*testbed_, {.config = {"user ann on >her-secret ~* &* +@all"}}).value();
  EXPECT_EQ(ask(server->port(), "PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(ask(server->port(), "AUTH wrong").substr(0, 10), "-WRONGPASS");
  EXPECT_EQ(ask(server->port(), "AUTH lockbench wrong").substr(0, 10), "-WRONGPASS");
  EXPECT_EQ(ask(server->port(), "AUTH ann her-secret"), "+OK");
  EXPECT_EQ(ask(server->port(), "AUTH lockbench " + testbed_->secret()), "+OK");
  struct stat facts {};
  ASSERT_EQ(stat((server->data_folder().parent_path() / "redis.conf").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST(Ports, LieBelowThoseOfClients) {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  if (first <= 10'000) first = 65'536;  // clients may have all ports here
  for (int i = 0; i < 20; ++i) EXPECT_LT(free_loopback_port().value(), first);
}

}  // namespace
}  // namespace lockbench::testbed
