#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "testbed/process/shims.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/testbed/support.h"

namespace lockbench::testbed {
namespace {

using namespace std::chrono_literals;

class ServerClock : public testing::Test {
 protected:
  const std::unique_ptr<Testbed> testbed_ = must_start();
  const std::unique_ptr<ClockShim> clock_ = must(ClockShim::make(*testbed_));
};

TEST_F(ServerClock, MovesTheWallClockOfOneServerWhileItRuns) {
  RedisOptions options = open_to_all();
  options.clock = clock_.get();
  const auto redis = must(start_redis(*testbed_, options));
  const std::uint16_t port = redis->port();
  EXPECT_EQ(ask(port, "SET soon x EX 1000"), "+OK");
  EXPECT_EQ(ask(port, "SET late x EX 9000"), "+OK");
  EXPECT_EQ(ask(port, "EXISTS soon late"), ":2");
  clock_->set(2000s);
  EXPECT_TRUE(eventually([&] { return ask(port, "EXISTS soon") == ":0"; }));
  EXPECT_EQ(ask(port, "EXISTS late"), ":1");
  clock_->set(0s);
  EXPECT_EQ(ask(port, "SET again x EX 1000"), "+OK");
  EXPECT_TRUE(eventually([&] { return ask(port, "EXISTS again") == ":1"; }));
}

/// Write access to its page would allow moving the server's clock.
TEST_F(ServerClock, BelongsToItsRun) {
  const std::filesystem::path folder = testbed_->folder() / "clock-1";
  for (const auto& [path, mode] : {std::pair{folder, 0700U}, {folder / "page", 0600U}}) {
    struct stat facts {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0) << path;
    EXPECT_EQ(facts.st_mode & 0777, mode) << path;
    EXPECT_EQ(facts.st_uid, geteuid() == 0 ? testbed_->account().uid : geteuid()) << path;
  }
}

TEST_F(ServerClock, LeavesOtherServersAlone) {
  const auto redis = must_start_redis(*testbed_);
  EXPECT_EQ(ask(redis->port(), "SET soon x EX 1000"), "+OK");
  clock_->set(2000s);
  EXPECT_EQ(ask(redis->port(), "EXISTS soon"), ":1");
}

/// As if the server's user may not enter its folder: the loader only warns, and the server would
/// run without it.
TEST_F(ServerClock, ThatIsNotLoadedIsNamedAndNoServerStarts) {
  const auto library = must(testbed_->make_server_folder("library")) / "no-library.so";
  std::ofstream(library) << "no library";
  const auto clock = must(ClockShim::make(*testbed_, library));
  const auto names_it = [&](const auto& server) {
    return !server &&
           server.error().find("has not loaded " + library.string()) != std::string::npos;
  };
  EXPECT_TRUE(names_it(start_redis(*testbed_, {.clock = clock.get()})));
  EXPECT_TRUE(names_it(start_memcached(*testbed_, {.clock = clock.get()})));
  EXPECT_TRUE(names_it(start_postgres(*testbed_, {.clock = clock.get()})));
}

/// Forbids this thread to look into other users' processes, like root in most containers.
void look_away() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  ASSERT_EQ(syscall(SYS_capget, &header, sets.data()), 0);
  sets.at(CAP_TO_INDEX(CAP_SYS_PTRACE)).effective &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
  ASSERT_EQ(syscall(SYS_capset, &header, sets.data()), 0);
}

TEST_F(ServerClock, IsLoadedByServersOfOtherUsers) {
  std::jthread([&] {
    look_away();
    for (const auto& server : {start_memcached(*testbed_, {.clock = clock_.get()}),
                               start_postgres(*testbed_, {.clock = clock_.get()})}) {
      EXPECT_TRUE(server) << server.error();
    }
  }).join();
}

}  // namespace
}  // namespace lockbench::testbed
