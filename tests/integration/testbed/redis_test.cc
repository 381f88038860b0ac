#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

class Redis : public testing::Test {
 protected:
  std::unique_ptr<Testbed> testbed_ = must_start();
};

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
